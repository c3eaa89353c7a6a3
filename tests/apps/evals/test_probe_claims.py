"""What a probe claims of its false alarms, by what it watches."""

from pathlib import Path

import pytest

from apps.evals.probe_claims import MEASURED, claim_of

DAY_S = 86_400
BORDER = {"border": {"temperature": 0.05}}


def test_log_probabilities_are_measured_and_no_bound_is_claimed_for_them():
    claim = claim_of({"logprobs": {"prompts": []}}, DAY_S / 4)

    assert claim.mode == "logprobs"
    assert claim.false_alarms[0].startswith("Log-probabilities: measured, no proof.")
    assert f"Of {MEASURED['logprobs'].rounds} unchanged rounds" in claim.false_alarms[0]
    assert "bound" not in claim.false_alarms[0]
    assert "0.02 nats" in claim.blind_to


@pytest.mark.parametrize(
    ("reference", "bound"), [({"border": None}, "0.18"), (BORDER, "0.36"), ({"logprobs": None}, "0.18")]
)
def test_without_them_the_bound_counts_every_test_and_stays_below_one_alarm(reference, bound):
    first = claim_of(reference, DAY_S / 4).false_alarms[0]

    assert first.startswith(f"A bound: at most {bound} false alarms in 90 days at this interval")


def test_a_bound_grows_with_the_rounds_a_day():
    assert "at most 26 false alarms" in claim_of(BORDER, 300).false_alarms[0]


def test_what_was_not_measured_is_not_told_as_measured(monkeypatch):
    monkeypatch.setitem(MEASURED, "border", None)

    assert claim_of(BORDER, DAY_S).false_alarms[1] == "Not measured yet."


def test_border_inputs_at_a_high_temperature_claim_no_measurement_and_less_sight():
    claim = claim_of({"border": {"temperature": 1.0}}, DAY_S)

    assert claim.false_alarms[1] == "Not measured at this temperature."
    assert "another adapter" in claim.blind_to


@pytest.mark.parametrize("mode", [mode for mode, found in MEASURED.items() if found])
def test_the_docs_tell_the_figures_that_the_page_tells(mode):
    docs = Path("docs/probes.md").read_text()
    found = MEASURED[mode]

    assert f"{found.flagged} of {found.rounds} rounds" in docs
    assert f"{found.alarming} of {found.quarters} quarters" in docs
