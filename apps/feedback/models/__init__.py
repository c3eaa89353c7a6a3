"""From production traffic to tasks: inferences, captures, cases, labels, verifiers, judges, datasets."""

from apps.feedback.models.captures import AnonymizationRules, Capture
from apps.feedback.models.cases import FailureCase, Label, LabelSchema
from apps.feedback.models.gauntlet import GauntletEntry, GauntletOutcome, GauntletRun
from apps.feedback.models.judges import Calibration, GoldAnswer, Judge, JudgedAnswer
from apps.feedback.models.tasks import Dataset, Family, TaskAsset
from apps.feedback.models.traffic import FeedbackSignal, HeldExchange, Inference
from apps.feedback.models.verifier_checks import AgreementRow, VerifierAgreement, VerifierTrial
from apps.feedback.models.verifiers import Verifier

__all__ = [
    "AgreementRow",
    "AnonymizationRules",
    "Calibration",
    "Capture",
    "Dataset",
    "FailureCase",
    "Family",
    "FeedbackSignal",
    "GauntletEntry",
    "GauntletOutcome",
    "GauntletRun",
    "GoldAnswer",
    "HeldExchange",
    "Inference",
    "Judge",
    "JudgedAnswer",
    "Label",
    "LabelSchema",
    "TaskAsset",
    "Verifier",
    "VerifierAgreement",
    "VerifierTrial",
]
