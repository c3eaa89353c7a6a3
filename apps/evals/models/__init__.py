"""Suites with immutable versions, runs cut into batches, results with states, probes."""

from apps.evals.models.gates import GateDecision, GateRevision
from apps.evals.models.probes import Probe, ProbeRound
from apps.evals.models.runs import Result, Run, RunCluster, RunSlice
from apps.evals.models.suites import Case, Suite, SuiteImport, SuiteVersion, SuiteVersionCase

__all__ = [
    "Case",
    "GateDecision",
    "GateRevision",
    "Probe",
    "ProbeRound",
    "Result",
    "Run",
    "RunCluster",
    "RunSlice",
    "Suite",
    "SuiteImport",
    "SuiteVersion",
    "SuiteVersionCase",
]
