"""Has the model behind an unchanged name changed? One round of fixed questions against a reference.

Four signals, one file each: what the endpoint says of itself (``identity``), log-probabilities of the
first token (``logprobs``), first tokens that are nearly a coin flip (``border``), and short answers at
temperature 0 (``answers``). ``verdicts`` reads a round and says what two rounds in a row mean;
``false_alarms`` says how often that goes wrong where nothing changed.
"""

from domain.drift.answers import Answer, answers_reference, answers_signal
from domain.drift.border import border_reference, border_signal, mixed_prompts, steadiest
from domain.drift.false_alarms import alarms_in
from domain.drift.identity import identity_reference, identity_signal
from domain.drift.logprobs import (
    Sample,
    informative_prompts,
    logprobs_reference,
    logprobs_signal,
    sample_of,
)
from domain.drift.signal import ALPHA, Signal, State
from domain.drift.verdicts import Reading, Round, RoundVerdict, alarming, read_round

__all__ = [
    "ALPHA",
    "Answer",
    "Reading",
    "Round",
    "RoundVerdict",
    "Sample",
    "Signal",
    "State",
    "alarming",
    "alarms_in",
    "answers_reference",
    "answers_signal",
    "border_reference",
    "border_signal",
    "identity_reference",
    "identity_signal",
    "informative_prompts",
    "logprobs_reference",
    "logprobs_signal",
    "mixed_prompts",
    "read_round",
    "sample_of",
    "steadiest",
]
