"""A judge asked about answers that people have judged: service, worker and report together."""

import json

import pytest

from apps.core.errors import Conflict, Refused
from apps.core.models import AuditEvent, WorkUnit
from apps.core.units import unit_report, units_pump
from apps.feedback import services
from apps.feedback.judge_items import items_for
from apps.feedback.models import Calibration, JudgedAnswer
from apps.versions.services import deployment_register_external
from domain.contracts import RunVerifyBatch
from tests.apps.feedback.conftest import RIGHT, WRONG
from tests.judges import Endpoints, Work, parts_of, verdict
from workers.engine import client
from workers.verify import run_verify_batch

pytestmark = pytest.mark.django_db
CRITERIA = {"criteria": ["Every field is right."], "models": ["frontier"]}


@pytest.fixture
def endpoints(settings, monkeypatch, project, actor):
    monkeypatch.setattr(client, "_RETRY_DELAYS_S", (0.0,))
    mock = Endpoints()
    settings.BASE_URL = mock.url
    for name in ("frontier", "second"):
        deployment_register_external(
            project=project, name=name, base_url="http://127.0.0.1:9", model=name, api_key="sk", by=actor
        )
    yield mock
    mock.stop()


@pytest.fixture
def judge(project, actor):
    return services.judge_save(project=project, name="Fields", kind="judge", params=CRITERIA, by=actor)


@pytest.fixture
def gold(project, actor):
    """Ten good answers and ten bad ones, of ten questions."""
    services.gold_add(
        project=project,
        items=[
            {"question": f"Question {n}?", "answer": f"The {word} answer {n}.", "passes": word == "good"}
            for n in range(10)
            for word in ("good", "bad")
        ],
        by=actor,
    )


def finish(calibration, store):
    """The worker's side, for real."""
    units_pump()
    unit = WorkUnit.objects.get(owner=calibration.lineage_key)
    result = run_verify_batch(RunVerifyBatch.model_validate(unit.payload), Work(store))
    report = {
        "type": "UnitFinished",
        "unit_id": unit.pk,
        "attempt": unit.attempt,
        "result": result.model_dump(),
    }
    unit_report(report=report)
    unit_report(report=report)  # a message may come twice
    calibration.refresh_from_db()
    return calibration


def honest(body):
    """A judge that is right about every gold answer."""
    return verdict(0.9 if "good" in parts_of(body)[1] else 0.1)


def test_labels_corrections_and_gold_answers_are_what_people_said(project, actor, make_case, family):
    bad, fine, split = make_case("e1"), make_case("e2", answer=RIGHT), make_case("e3")
    services.case_label(case=bad, kind="wrong_value", severity="major", correction=RIGHT, by=actor)
    services.case_label(case=fine, kind="not_a_failure", severity="", by=actor)
    services.case_label(case=split, kind="wrong_value", severity="major", by=actor)
    other = type(actor)(project=project, name="grace", role=actor.role)
    services.case_label(case=split, kind="not_a_failure", severity="", by=other)
    services.gold_add(project=project, items=[{"question": "Q?", "answer": "A.", "passes": False}], by=actor)

    found = items_for(project, "judge")

    said = [(item.origin, item.human, item.case_id) for item in found.items]
    assert said == [
        ("label", True, fine.pk),
        ("correction", True, bad.pk),
        ("gold", False, None),
        ("label", False, bad.pk),
    ]
    assert found.left_out == {"people_disagree": 1}
    assert len({item.source for item in found.items if item.case_id == bad.pk}) == 1


def test_a_comparison_is_calibrated_on_answers_with_their_corrections(project, actor, labelled):
    services.gold_add(project=project, items=[{"question": "Q?", "answer": "A.", "passes": False}], by=actor)

    found = items_for(project, "pairwise")

    assert [(item.answer, item.baseline, item.human) for item in found.items] == [
        (RIGHT, WRONG, True),
        (WRONG, RIGHT, False),
    ]


def test_of_too_many_answers_both_sides_are_taken(project, actor, gold):
    found = items_for(project, "judge", 6)

    assert sorted(item.human for item in found.items) == [False] * 3 + [True] * 3
    assert found.left_out == {"over_the_limit": 14}


def test_a_good_judge_agrees_and_what_it_cost_is_known(endpoints, judge, gold, actor, store):
    endpoints.replies["frontier"] = honest
    judge.project.deployments.filter(name="frontier").update(input_usd_per_mtok=2, output_usd_per_mtok=10)

    calibration = finish(services.calibration_start(judge=judge, by=actor), store)

    assert calibration.state == "done"
    assert calibration.kappa == 1.0
    assert calibration.figures["confusion"] == {
        "fail_fail": 10, "fail_pass": 0, "pass_fail": 0, "pass_pass": 10,
    }  # fmt: skip
    assert calibration.figures["kappa_interval"]["clusters"] == 10
    assert calibration.answers.count() == 20
    assert (calibration.prompt_tokens, calibration.completion_tokens) == (4000, 400)
    assert calibration.cost_usd == pytest.approx(0.012)
    assert calibration.doubts == ["It was compared with people on 20 answers only; 30 are the least."]
    assert AuditEvent.objects.filter(action="judge.calibrate").count() == 1


def test_an_unknown_price_is_no_cost_of_nothing(endpoints, judge, gold, actor, store):
    endpoints.replies["frontier"] = honest

    assert finish(services.calibration_start(judge=judge, by=actor), store).cost_usd is None


def test_opik_8134_a_judge_that_crashes_on_half_covers_half(endpoints, judge, gold, actor, store):
    def crashing(body):
        return 500 if int(parts_of(body)[0].strip("Question ?")) < 5 else honest(body)

    endpoints.replies["frontier"] = crashing

    calibration = finish(services.calibration_start(judge=judge, by=actor), store)

    assert calibration.figures["coverage"] == 0.5
    assert calibration.figures["silent"] == {"error": 10}
    assert calibration.figures["decided"] == 10
    assert "50 % of the answers undecided" in " ".join(calibration.doubts)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ('{"pass": true, "score": 0}', "contradicts itself"),
        ("{}", "empty"),
        ('{"pass": true, "score": null}', "null"),
    ],
)
def test_promptfoo_8130_2998_malformed_verdicts_count_as_malformed(
    endpoints, judge, gold, actor, store, reply, reason
):
    endpoints.replies["frontier"] = lambda body: reply

    calibration = finish(services.calibration_start(judge=judge, by=actor), store)

    assert calibration.figures["silent"] == {"malformed": 20}
    assert calibration.kappa is None
    assert calibration.doubts == ["It decided none of the answers that people have judged."]
    row = calibration.answers.first()
    assert (row.judged, row.score, row.silence) == (None, None, "malformed")
    assert any(reason in said for said in row.reasons)


def test_dkpro_statistics_19_people_of_one_mind_leave_kappa_undefined(
    endpoints, judge, project, actor, store
):
    services.gold_add(
        project=project,
        items=[{"question": f"Q{n}?", "answer": "The good answer.", "passes": True} for n in range(30)],
        by=actor,
    )
    endpoints.replies["frontier"] = honest

    calibration = finish(services.calibration_start(judge=judge, by=actor), store)

    assert calibration.kappa is None
    assert calibration.figures["accuracy"] == 1.0
    assert "undefined" in calibration.doubts[0]


def test_a_panel_s_own_agreement_and_disagreements_are_kept(endpoints, project, actor, gold, store):
    panel = services.judge_save(
        project=project,
        name="Panel",
        kind="judge",
        params={**CRITERIA, "prompts": ["rubric"], "models": ["frontier", "second"], "aggregate": "mean"},
        by=actor,
    )
    endpoints.replies["frontier"] = honest
    endpoints.replies["second"] = lambda body: verdict(0.9)

    calibration = finish(services.calibration_start(judge=panel, by=actor), store)

    assert calibration.figures["alpha"] == pytest.approx(-0.3, abs=0.05)
    wrong = JudgedAnswer.objects.filter(calibration=calibration).disagreements()
    assert wrong.count() == 10  # 0.1 and 0.9 make 0.5
    assert [vote["passed"] for vote in wrong[0].votes] == [False, True]


def test_a_comparison_that_follows_the_place_is_found_out(endpoints, project, actor, labelled, store):
    pairs = services.judge_save(project=project, name="Pairs", kind="pairwise", params=CRITERIA, by=actor)
    endpoints.replies["frontier"] = lambda body: json.dumps({"better": "A"})

    calibration = finish(services.calibration_start(judge=pairs, by=actor), store)

    assert calibration.figures["first_place"] == 1.0
    assert calibration.figures["contradicting"] == 1.0
    assert [row.judged for row in calibration.answers.all()] == [False, False]


def test_a_judge_that_changes_its_mind_abstains(endpoints, project, actor, gold, store):
    twice = services.judge_save(
        project=project, name="Twice", kind="judge", params={**CRITERIA, "repeats": 2}, by=actor
    )
    endpoints.replies["frontier"] = lambda body: verdict(0.9 if body["seed"] == 0 else 0.1)

    calibration = finish(services.calibration_start(judge=twice, by=actor), store)

    assert calibration.figures["silent"] == {"unstable": 20}


def test_a_second_calibration_waits_for_the_first(endpoints, judge, gold, actor, store):
    services.calibration_start(judge=judge, by=actor)

    with pytest.raises(Conflict, match="being calibrated already"):
        services.calibration_start(judge=judge, by=actor)
    assert Calibration.objects.count() == 1


def test_a_cancelled_calibration_stays_cancelled_when_its_report_comes(endpoints, judge, gold, actor, store):
    endpoints.replies["frontier"] = honest
    calibration = services.calibration_start(judge=judge, by=actor)

    services.calibration_cancel(calibration=calibration, by=actor)
    with pytest.raises(Conflict, match="ended already"):
        services.calibration_cancel(calibration=calibration, by=actor)
    assert services.calibration_start(judge=judge, by=actor).number == 2
    assert Calibration.objects.get(pk=calibration.pk).figures is None


def test_a_lost_worker_leaves_a_failed_calibration_and_no_figures(endpoints, judge, gold, actor, store):
    calibration = services.calibration_start(judge=judge, by=actor)
    unit = WorkUnit.objects.get(owner=calibration.lineage_key)
    WorkUnit.objects.update(max_attempts=1)
    units_pump()
    unit.refresh_from_db()

    unit_report(
        report={
            "type": "UnitFailed",
            "unit_id": unit.pk,
            "attempt": unit.attempt,
            "error": "disk full",
            "retryable": False,
        }
    )

    calibration.refresh_from_db()
    assert (calibration.state, calibration.figures, calibration.error) == ("failed", None, "disk full")


def test_a_judge_without_its_endpoint_or_without_answers_is_not_started(project, actor, judge, store):
    with pytest.raises(Refused, match="no endpoint “frontier”"):
        services.calibration_start(judge=judge, by=actor)

    deployment_register_external(
        project=project, name="frontier", base_url="http://127.0.0.1:9", model="m", api_key="sk", by=actor
    )
    with pytest.raises(Refused, match="no answers judged by people"):
        services.calibration_start(judge=judge, by=actor)
    with pytest.raises(Refused, match="Take 2 to 500"):
        services.calibration_start(judge=judge, limit=0, by=actor)


def test_what_is_sent_to_a_judge_holds_no_human_verdict(endpoints, judge, gold, actor, store):
    endpoints.replies["frontier"] = honest

    finish(services.calibration_start(judge=judge, by=actor), store)

    sent = json.dumps(endpoints.asked)
    assert "human" not in sent
    assert "gold" not in sent
