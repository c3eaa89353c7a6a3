"""``make turn`` as a whole: its exit code, its report, and that it leaves nothing running."""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.stack import ROOT, environment, living_on

pytestmark = pytest.mark.e2e

SEED = 3
LIMIT_S = 40 * 60  # so that it ends


@dataclass
class Turned:
    code: int
    output: str
    report: dict[str, Any]
    data: Path


@pytest.fixture(scope="module")
def turned(tmp_path_factory: pytest.TempPathFactory) -> Turned:
    folder = tmp_path_factory.mktemp("turn")
    data, report = folder / "data", folder / "turn.json"
    command = ["turn", "--seed", str(SEED), "--data", str(data), "--report", str(report)]
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "config.launch", *command],
        cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.terminate()  # the launcher stops what it started
        output, _ = process.communicate(timeout=240)
        pytest.fail(f"not done after {time.monotonic() - began:.0f} s:\n{output[-4000:]}")
    assert report.exists(), output[-4000:]
    return Turned(process.returncode, output, json.loads(report.read_text()), data)


def test_the_turn_succeeds(turned: Turned):
    assert turned.code == 0, turned.output[-4000:]
    assert turned.report["succeeded"] is True
    assert all(turned.report["checks"].values())


def test_the_report_is_of_the_seed_that_was_asked_for(turned: Turned):
    assert turned.report["seed"] == SEED
    assert 0 < turned.report["seconds"] < LIMIT_S


@pytest.mark.parametrize("which", ["baseline", "trained"])
def test_pass_rates_stand_inside_their_intervals(turned: Turned, which: str):
    rate = turned.report[which]

    assert isinstance(rate["n"], int)
    assert rate["n"] >= 100
    assert 0 <= rate["low"] <= rate["pass"] <= rate["high"] <= 1


def test_the_improvement_excludes_zero(turned: Turned):
    found = turned.report["difference"]
    rates = turned.report["trained"]["pass"] - turned.report["baseline"]["pass"]

    assert 0 < found["low"] <= found["mean"] <= found["high"]
    assert found["mean"] == pytest.approx(rates, abs=0.02)
    assert found["verdict"] == "better"


def test_the_good_version_was_promoted_by_the_gate(turned: Turned):
    release = turned.report["release"]

    assert release["decision"] == "promote"
    assert release["reasons"]
    assert all(isinstance(reason, str) and reason for reason in release["reasons"])


def test_the_damaged_version_was_rolled_back_after_counted_units(turned: Turned):
    damaged = turned.report["damaged"]

    assert damaged["decision"] == "roll_back"
    assert isinstance(damaged["units_to_rollback"], int)
    assert damaged["units_to_rollback"] > 0
    assert damaged["version"] != turned.report["in_service"]["version"]


def test_what_serves_is_what_was_trained(turned: Turned):
    served = turned.report["in_service"]

    assert served["edition"] in ("standard", "high_speed")
    assert served["version"] in " ".join(turned.report["lineage"])
    assert turned.report["checks"]["good_version_serves"] is True


def test_the_lineage_leads_from_failures_to_the_version(turned: Turned):
    lineage = turned.report["lineage"]

    assert len(lineage) >= 3
    assert all(isinstance(label, str) and label for label in lineage)


def test_progress_is_printed_and_the_last_line_says_how_to_look(turned: Turned):
    lines = turned.output.strip().splitlines()

    assert lines[-1] == f"Look at it: make run DATA={turned.data}"
    for phase in ("prepare", "traffic", "label", "train", "evaluate", "release", "drill", "report"):
        assert any(f"  {phase} " in line for line in lines), phase


def test_the_data_stays_and_nothing_runs(turned: Turned):
    assert (turned.data / "flywheel.sqlite3").stat().st_size > 0
    assert [process.cmdline() for process in living_on(turned.data)] == []
