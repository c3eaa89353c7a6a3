"""Gates of suites: rules as revisions, decisions that stay, evidence that blocks releases."""

import json
import re

import pytest
from django.db import OperationalError

from apps.core.errors import Conflict, Refused
from apps.core.models import AuditEvent, Membership, Project
from apps.evals import services
from apps.evals.models import GateDecision, Run
from apps.evals.selectors import gates
from apps.evals.services.gate_ticks import gates_tick
from apps.versions import services as versions
from apps.versions.models import Evidence
from apps.versions.release_gates import gate_blockers, gate_standings
from tests.apps.evals.conftest import make_task, text

pytestmark = pytest.mark.django_db

FLOOR = [{"kind": "floor", "min_rate": 0.5}]
MARGIN = [{"kind": "non_inferiority", "margin": 0.3}]


@pytest.fixture
def suite_version(store, project, actor):
    """Forty cases in two families."""
    suite = services.suite_create(project=project, name="Sums", by=actor)
    tasks = [make_task(n, family="sums" if n % 2 else "tables") for n in range(40)]
    return services.suite_version_create(suite=suite, tasks=tasks, by=actor)


@pytest.fixture
def suite(suite_version):
    return suite_version.suite


def revise(suite, actor, rules=FLOOR, **changes):
    return services.gate_revise(suite=suite, rules=rules, reason="Agreed", by=actor, **changes)


def test_each_change_is_a_numbered_revision_with_who_and_why(suite, actor):
    first = revise(suite, actor)
    second = revise(suite, actor, MARGIN)

    assert (first.number, second.number) == (1, 2)
    assert (second.created_by, second.reason) == ("ada", "Agreed")
    assert gates.gate_in_force(suite) == second
    assert AuditEvent.objects.filter(action="gate.revise").count() == 2


def test_a_revision_and_a_decision_are_never_changed(suite, actor, start, finish):
    revision = revise(suite, actor)
    run = start()
    finish(run)
    decision = services.gate_decide(run=run, by=actor)

    with pytest.raises(TypeError, match="never changed"):
        revision.save()
    with pytest.raises(TypeError, match="never changed"):
        decision.save()
    with pytest.raises(TypeError, match="append-only"):
        GateDecision.objects.update(decision="passed")


def test_rules_that_cannot_be_and_changes_that_are_none_are_refused(suite, actor):
    revise(suite, actor)

    with pytest.raises(Refused, match="min_rate is a share"):
        revise(suite, actor, [{"kind": "floor", "min_rate": 70}])
    with pytest.raises(Conflict, match="rules in force"):
        revise(suite, actor)
    with pytest.raises(Refused, match="Give a reason"):
        services.gate_revise(suite=suite, rules=MARGIN, reason=" ", by=actor)


def test_no_rules_take_the_gate_away(suite, actor, start, finish):
    revise(suite, actor)
    revise(suite, actor, [])
    run = start()
    finish(run)

    assert gates.gate_in_force(suite) is None
    with pytest.raises(Conflict, match="has no gate"):
        services.gate_decide(run=run, by=actor)


def test_inspect_3707_ten_errors_of_a_hundred_leave_the_gate_undecided(
    store, project, actor, start, finish, version
):
    suite = services.suite_create(project=project, name="Hundred", by=actor)
    made = services.suite_version_create(suite=suite, tasks=[make_task(n) for n in range(100)], by=actor)
    revise(suite, actor, [{"kind": "floor", "min_rate": 0.75}])
    run = start(suite_version=made)
    states = {f"case-{n}": "error" for n in range(10)} | {f"case-{n}": "failed" for n in range(10, 20)}
    finish(run, states)

    decision = services.gate_decide(run=run, by=actor)

    assert decision.decision == "undecided"
    assert "80 of 90 scored answers passed, 10 errors, coverage 90 %" in decision.sentence
    assert [row.state for row in gate_standings(version)] == ["undecided"]


def test_a_run_is_judged_when_it_has_ended_and_once(suite, actor, start, finish):
    revise(suite, actor)
    run = start()
    assert gates_tick() == 0
    finish(run)

    assert gates_tick() == 1
    assert gates_tick() == 0
    assert run.gate_decisions.get().decision == "passed"


def test_errors_that_come_back_are_judged_anew_but_not_for_ever(suite, actor, start, finish):
    revise(suite, actor)
    run = start()
    finish(run, {f"case-{n}": "error" for n in range(4)})
    gates_tick()
    services.run_retry_errors(run=run, by=actor)
    finish(run, {f"case-{n}": "error" for n in range(4)})

    assert gates_tick() == 1
    assert gates_tick() == 0
    assert run.gate_decisions.count() == 2


def test_a_run_that_cannot_be_judged_is_undecided_once_and_says_why(
    suite, actor, start, finish, candidate, page, monkeypatch, caplog
):
    revise(suite, actor)
    run = start(version=candidate)
    finish(run)
    with monkeypatch.context() as broken:
        broken.setattr("apps.evals.services.gates.gate_evidence", lambda *_: 1 / 0)
        told = [gates_tick(), gates_tick(), gates_tick()]

    decision = run.gate_decisions.get()
    assert told == [0, 0, 0]
    assert decision.decision == "undecided"
    assert "ZeroDivisionError" in decision.sentence
    assert [record.message for record in caplog.records] == [f"gate not decided run={run.pk}"]
    assert "ZeroDivisionError" in text(page.get(decision.get_absolute_url()))
    evidence = Evidence.objects.get(version=candidate, kind="gate")
    assert evidence.verdict == "undecided"

    assert services.gate_decide(run=run, by=actor).decision == "passed"  # mended, and asked again
    assert Evidence.objects.filter(version=candidate, kind="gate", verdict="passed").exists()


def test_a_database_that_is_busy_leaves_a_run_to_the_next_tick(
    suite, actor, start, finish, monkeypatch, caplog
):
    revise(suite, actor)
    finish(start())
    with monkeypatch.context() as busy:

        def locked(*_):
            raise OperationalError("database is locked")

        busy.setattr("apps.evals.services.gates.gate_evidence", locked)
        assert gates_tick() == 0

    assert not GateDecision.objects.exists()
    assert "Traceback" not in caplog.text
    assert gates_tick() == 1


def test_runs_that_ended_before_the_rules_are_left_alone_until_asked(suite, actor, start, finish):
    run = start()
    finish(run)
    revise(suite, actor)

    assert gates_tick() == 0
    assert services.gate_decide(run=run, by=actor).decision == "passed"


def test_the_same_question_has_one_answer(suite, actor, start, finish):
    revise(suite, actor)
    run = start()
    finish(run)

    first, second = (services.gate_decide(run=run, by=actor) for _ in range(2))

    assert first == second
    assert GateDecision.objects.count() == 1
    assert len({first.suite_digest, first.rules_digest, first.run_digest, first.digest}) == 4


def test_a_run_that_goes_on_is_not_judged(suite, actor, start):
    revise(suite, actor)

    with pytest.raises(Conflict, match="Wait until the run has ended"):
        services.gate_decide(run=start(), by=actor)


def test_a_run_in_which_everything_broke_is_undecided(suite, actor, start, finish):
    revise(suite, actor)
    run = start()
    finish(run, {f"case-{n}": "error" for n in range(40)})
    run.refresh_from_db()

    assert run.state == Run.State.FAILED
    assert services.gate_decide(run=run, by=actor).decision == "undecided"


def test_the_version_in_service_is_the_baseline(suite, actor, start, finish, candidate, version):
    revise(suite, actor, MARGIN)
    base, new = start(), start(version=candidate)
    finish(base)
    finish(new, {"case-1": "failed"})

    decision = services.gate_decide(run=new, by=actor)

    assert decision.baseline == base
    assert decision.decision == "passed"
    assert "against 1.0 standard, run" in decision.results[1]["sentence"]
    assert decision.baseline_digest


def test_without_a_run_of_the_version_in_service_the_margin_is_undecided(
    suite, actor, start, finish, candidate
):
    revise(suite, actor, MARGIN)
    new = start(version=candidate)
    finish(new)

    decision = services.gate_decide(run=new, by=actor)

    assert decision.decision == "undecided"
    assert "1.0, in service, has no finished run of this suite. Run it once." in decision.sentence


def test_a_run_of_the_version_in_service_has_nothing_to_be_compared_with(suite, actor, start, finish):
    revise(suite, actor, MARGIN)
    run = start()
    finish(run)

    assert "there is nothing to compare it with" in services.gate_decide(run=run, by=actor).sentence


def test_a_named_baseline_answers_but_opens_no_release(suite, actor, start, finish, candidate):
    revise(suite, actor, MARGIN)
    weak, new = start(), start(version=candidate)
    finish(weak, {f"case-{n}": "failed" for n in range(40)})
    finish(new, {f"case-{n}": "failed" for n in range(30)})

    decision = services.gate_decide(run=new, baseline=weak, by=actor)

    assert decision.decision == "passed"
    assert not decision.in_service_baseline
    assert not Evidence.objects.filter(kind="gate").exists()
    assert gate_blockers(candidate)


def test_a_baseline_of_another_suite_or_the_run_itself_is_refused(
    suite, actor, start, finish, project, store
):
    revise(suite, actor, MARGIN)
    other = services.suite_create(project=project, name="Other", by=actor)
    foreign_version = services.suite_version_create(suite=other, tasks=[make_task(1)], by=actor)
    run, foreign, going = start(), start(suite_version=foreign_version), start()
    finish(run)
    finish(foreign)

    for baseline, words in ((foreign, "another suite"), (run, "its own baseline"), (going, "not finished")):
        with pytest.raises(Refused, match=words):
            services.gate_decide(run=run, baseline=baseline, by=actor)


def test_a_named_case_that_is_lost_fails_the_gate(suite, actor, start, finish, candidate):
    revise(suite, actor, [{"kind": "no_regression", "cases": ["case-3"], "tags": []}])
    base, new = start(), start(version=candidate)
    finish(base)
    finish(new, {"case-3": "failed"})

    decision = services.gate_decide(run=new, by=actor)

    assert decision.decision == "failed"
    assert "case-3 passed before and failed now." in decision.sentence


def test_floors_of_slices_read_the_family(suite, actor, start, finish):
    revise(suite, actor, [{"kind": "slice_floor", "axis": "family", "min_rate": 0.5}])
    run = start()
    finish(run, {f"case-{n}": "failed" for n in range(1, 40, 2)})

    assert "family = sums: 0 %" in services.gate_decide(run=run, by=actor).sentence


def test_tags_name_cases_and_axes(store, project, actor, start, finish):
    suite = services.suite_create(project=project, name="Tagged", by=actor)
    tasks = [make_task(n, tags={"tier": "gold" if n < 12 else "tin"}) for n in range(24)]
    made = services.suite_version_create(suite=suite, tasks=tasks, by=actor)
    revise(
        suite,
        actor,
        [
            {"kind": "no_regression", "tags": ["tier = gold"], "must": "pass"},
            {"kind": "slice_floor", "axis": "tier", "value": "tin", "min_rate": 0.9},
        ],
    )
    run = start(suite_version=made)
    finish(run, {"case-2": "failed", "case-20": "failed"})

    results = services.gate_decide(run=run, by=actor).results

    assert results[1]["figures"]["lost"] == ["case-2"]
    assert results[2]["figures"]["slices"][0]["n"] == 12


def test_cost_and_latency_are_read_from_the_results(suite, actor, start, finish):
    revise(suite, actor, [{"kind": "latency", "p95_ms": 100}, {"kind": "cost", "max_tokens": 50}])
    run = start()
    finish(run, latency_ms=80.0, prompt_tokens=30, completion_tokens=30)

    results = services.gate_decide(run=run, by=actor).results

    assert [row["state"] for row in results] == ["passed", "passed", "failed"]
    assert results[2]["figures"]["tokens"] == 60


# releases ------------------------------------------------------------------------------------


@pytest.fixture
def judged(suite, actor, start, finish, candidate):
    """Run ``candidate`` with some failures and judge it by a floor of 50 %."""
    revise(suite, actor)

    def make(failures):
        run = start(version=candidate)
        finish(run, {f"case-{n}": "failed" for n in range(failures)})
        return services.gate_decide(run=run, by=actor)

    return make


def test_a_release_needs_the_gate(judged, candidate, actor):
    judged(35)

    with pytest.raises(Conflict, match="Gate of Sums failed") as raised:
        versions.release_start(candidate=candidate, reason="Friday", by=actor)

    assert raised.value.code == "gate_blocks"
    assert raised.value.detail["gates"][0]["state"] == "failed"


def test_an_undecided_gate_blocks_too(judged, candidate, actor):
    judged(18)

    with pytest.raises(Conflict, match="Gate of Sums is undecided"):
        versions.version_promote(version=candidate, reason="Friday", by=actor)


def test_a_gate_without_an_answer_blocks(suite, candidate, actor, start, finish, version):
    versions.evidence_record(version=candidate, kind="suite", source="x", title="x", sentence="x")
    revise(suite, actor)

    with pytest.raises(Conflict, match=r"Gate of Sums has no answer: run its suite on 1\.1\."):
        versions.release_start(candidate=candidate, reason="Friday", by=actor)


def test_a_passed_gate_lets_through(judged, candidate, actor):
    judged(2)

    assert versions.release_start(candidate=candidate, reason="Friday", by=actor).state == "running"


def test_a_gate_that_does_not_block_releases_does_not(suite, actor, start, finish, candidate):
    revise(suite, actor, blocks_release=False)
    run = start(version=candidate)
    finish(run, {f"case-{n}": "failed" for n in range(35)})
    services.gate_decide(run=run, by=actor)

    assert versions.release_start(candidate=candidate, reason="Friday", by=actor)


def test_a_typed_reason_overrides_and_is_kept_and_audited(judged, candidate, actor):
    judged(35)

    release = versions.release_start(
        candidate=candidate, reason="Friday", override_gates="Legal asked for it", by=actor
    )

    kept = Evidence.objects.get(kind="gate_override")
    assert release.state == "running"
    assert kept.sentence == "ada: Legal asked for it (the gate was failed)"
    event = AuditEvent.objects.get(action="version.override_gate")
    assert event.reason == "Legal asked for it"
    assert gate_standings(candidate)[0].overridden == kept
    assert not gate_blockers(candidate)


def test_the_release_page_shows_the_gate_and_who_overrode_it(page, judged, candidate, actor):
    judged(35)
    release = versions.release_start(
        candidate=candidate, reason="Friday", override_gates="Legal asked", by=actor
    )

    shown = text(page.get(release.get_absolute_url()))

    assert "passed, or a reason why not" in shown
    assert "ada: Legal asked (the gate was failed)" in shown
    assert "Gate of Sums overridden" in shown


def test_an_override_counts_only_for_what_was_known(judged, candidate, actor):
    judged(35)
    release = versions.release_start(
        candidate=candidate, reason="Friday", override_gates="Legal asked", by=actor
    )
    versions.release_abort(release=release, reason="No", by=actor)
    judged(36)

    with pytest.raises(Conflict, match="Gate of Sums failed"):
        versions.release_start(candidate=candidate, reason="Monday", by=actor)


def test_new_rules_or_new_cases_make_a_pass_outdated(judged, suite, candidate, actor):
    judged(2)
    revise(suite, actor, [{"kind": "floor", "min_rate": 0.6}])

    assert gate_blockers(candidate)[0].state == "stale"
    assert "it was passed by rules 1 on v1; now rules 2 on v1 count." in gate_blockers(candidate)[0].sentence

    services.gate_decide(run=Run.objects.first(), by=actor)
    assert gate_blockers(candidate) == []

    services.suite_version_create(suite=suite, tasks=[make_task(99)], by=actor)
    assert gate_blockers(candidate)[0].state == "stale"


def test_the_newest_run_speaks_for_the_version(judged, candidate, actor, start):
    first = judged(35)
    judged(2)

    services.gate_decide(run=first.run, by=actor)

    assert gate_blockers(candidate) == []


def test_every_edition_that_was_judged_has_to_pass(judged, candidate, actor, start, finish):
    judged(2)
    fast = start(version=candidate, edition_kind="high_speed")
    finish(fast, {f"case-{n}": "failed" for n in range(38)})
    services.gate_decide(run=fast, by=actor)

    assert gate_blockers(candidate)[0].state == "failed"


def test_a_gate_that_fails_while_a_release_runs_holds_it(judged, candidate, actor):
    from apps.versions.services.gate import _go_on
    from domain.gates import Decision
    from domain.sequential import SampleRatio

    judged(2)
    release = versions.release_start(candidate=candidate, reason="Friday", by=actor)
    judged(38)
    advance = Decision("advance", ("Good.",), 1.0, 0.0, None, SampleRatio("ok", 0.0, 9), 9, 1)

    _go_on(release, advance, actor)

    release.refresh_from_db()
    assert release.verdict == "hold"
    assert release.step_index == 0
    assert release.reasons[0].startswith("Gate of Sums failed")


def test_gates_of_another_project_do_not_matter(judged, candidate, project):
    other = Project.objects.create(name="Other", slug="other")

    assert gates.gates_required(other) == []
    assert len(gates.gates_required(project)) == 1


# pages and API -------------------------------------------------------------------------------

FORM = {
    "floor": "70",
    "margin": "2",
    "alpha": "",
    "cases": "case-1\ncase-2",
    "tags": "",
    "must": "not_regress",
    "min_coverage": "95",
    "max_errors": "2",
    "p95_ms": "1500",
    "max_usd": "",
    "max_tokens": "300",
    "slices": "family=sums 60\nfamily 50 %",
    "blocks_release": "on",
    "reason": "Agreed",
}


def test_the_form_writes_rules_and_reads_them_back(page, suite):
    answer = page.post(f"/evals/suites/{suite.pk}/gate/edit/", FORM)

    assert answer.status_code == 302
    rules = gates.gate_in_force(suite).rules
    assert {row["kind"] for row in rules} == {
        "coverage", "error_rate", "floor", "non_inferiority", "no_regression", "latency", "cost",
        "slice_floor",
    }  # fmt: skip
    again = text(page.get(f"/evals/suites/{suite.pk}/gate/edit/"))
    assert 'value="70"' in again
    assert "family=sums 60 family 50" in again
    page.post(f"/evals/suites/{suite.pk}/gate/edit/", {**FORM, "reason": "Again"})
    assert suite.gate_revisions.count() == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"slices": "family"}, "Line 1: write"),
        ({"tags": "gold"}, "A tag is written"),
        ({"reason": ""}, "Give a reason"),
        ({"floor": "170"}, "less than or equal to 100"),
        ({"floor": "nan"}, "Enter a number"),
    ],
)
def test_the_form_says_what_is_wrong(page, suite, changes, words):
    answer = page.post(f"/evals/suites/{suite.pk}/gate/edit/", {**FORM, **changes})

    assert answer.status_code == 400
    assert words in text(answer)
    assert not suite.gate_revisions.exists()


def test_a_viewer_reads_the_gate_but_may_not_change_it(client, viewer, suite):
    client.force_login(viewer.user)

    assert client.get(f"/evals/suites/{suite.pk}/gate/").status_code == 200
    assert client.get(f"/evals/suites/{suite.pk}/gate/edit/").status_code == 403
    assert client.post(f"/evals/suites/{suite.pk}/gate/edit/", FORM).status_code == 403


def test_the_run_page_shows_the_gate(page, judged):
    decision = judged(35)

    shown = text(page.get(decision.run.get_absolute_url()))

    assert "all of it lies under 50 %" in shown
    assert "The pass rate&#x27;s lower limit is at least 50 %" in shown
    assert f'href="{decision.get_absolute_url()}"' in shown


def test_the_decision_page_shows_figures_and_digests(page, judged):
    decision = judged(35)

    shown = text(page.get(decision.get_absolute_url()))

    assert decision.run_digest[:16] in shown
    assert "Judge again" in shown


def test_the_decision_page_names_every_figure_in_words(page, suite, actor, start, finish):
    rules = [
        {"kind": "error_rate", "max_rate": 0.01},
        {"kind": "floor", "min_rate": 0.5},
        {"kind": "non_inferiority", "margin": 0.02},
        {"kind": "no_regression", "cases": ["case-1"]},
        {"kind": "latency", "p95_ms": 100},
        {"kind": "cost", "max_tokens": 50},
        {"kind": "slice_floor", "axis": "family", "min_rate": 0.5},
    ]
    revise(suite, actor, rules)
    run = start()
    finish(run, latency_ms=80.0, prompt_tokens=30, completion_tokens=30)
    decision = services.gate_decide(run=run, by=actor)

    shown = text(page.get(decision.get_absolute_url()))

    terms = re.findall(r"<dt>([^<]+)</dt>", shown)
    assert {"Scored of all samples", "Errors of all samples", "Lower limit", "Latency, p95"} <= set(terms)
    assert [term for term in terms if "_" in term or term[:1].islower()] == ["n"] * terms.count("n")


def test_a_part_of_a_page_opened_by_itself_is_a_whole_page(page, judged):
    path = f"/evals/runs/{judged(2).run_id}/gate/"

    whole, part = text(page.get(path)), text(page.get(path, headers={"hx-request": "true"}))

    assert whole.startswith("<!doctype html>")
    assert "All 2 rules hold." in whole
    assert part.startswith('<section class="panel" id="gate"')


def test_the_release_and_promote_pages_ask_why_in_spite_of_the_gate(page, judged, candidate):
    judged(35)

    for path in ("release", "promote"):
        shown = text(page.get(f"/versions/{candidate.pk}/{path}/"))
        assert "Gate of Sums</a>: 1 of 2 rules failed." in shown
        assert "Why in spite of the gate</label>" in shown
    shown = text(page.post(f"/versions/{candidate.pk}/promote/", {"reason": "Friday"}))
    assert "Say why you release in spite of it." in shown
    answer = page.post(
        f"/versions/{candidate.pk}/release/",
        {
            "steps": "10 % 40", "margin": "2", "alpha": "5", "failure_signals": ["error"],
            "reason": "Friday", "override_gates": "Legal asked",
        },
    )  # fmt: skip
    assert answer.status_code == 302


def test_the_version_page_shows_how_its_gates_stand(page, judged, candidate):
    judged(2)

    shown = text(page.get(f"/versions/{candidate.pk}/"))

    assert "Required gates" in shown
    assert "Gate of Sums</a>: All 2 rules hold." in shown


def test_the_list_of_decisions_costs_the_same_for_many(page, judged, suite, django_assert_max_num_queries):
    for failures in (1, 2, 3):
        judged(failures)

    with django_assert_max_num_queries(14):
        assert text(page.get(f"/evals/suites/{suite.pk}/gate/")).count("/evals/gates/") == 3


def test_another_project_s_gate_is_not_found(page, judged, suite, project):
    decision = judged(2)
    other = Project.objects.create(name="Other", slug="other")
    Membership.objects.filter(project=project).update(project=other)

    assert page.get(decision.get_absolute_url()).status_code == 404
    assert page.get(f"/evals/suites/{suite.pk}/gate/").status_code == 404
    assert page.post(f"/evals/runs/{decision.run_id}/judge/").status_code == 404


def send(api, path, body):
    return api.post(f"/api/v1{path}", json.dumps(body), content_type="application/json")


def test_a_gate_lives_over_rest(api, suite, start, finish, candidate):
    path = f"/suites/{suite.pk}/gate"
    assert api.get(f"/api/v1{path}").status_code == 404
    made = send(api, path, {"rules": FLOOR, "reason": "Agreed"})
    assert made.status_code == 201
    assert made.json()["words"][1] == "the pass rate's lower limit is at least 50 %"
    run = start(version=candidate)
    finish(run)
    assert api.get(f"/api/v1/runs/{run.pk}/gate").status_code == 404

    judged = send(api, f"/runs/{run.pk}/gate", {})

    assert judged.json()["decision"] == "passed"
    assert api.get(f"/api/v1/runs/{run.pk}/gate").json() == judged.json()
    assert [row["id"] for row in api.get("/api/v1/gates").json()] == [judged.json()["id"]]
    assert api.get(f"/api/v1/versions/{candidate.pk}/gates").json()[0]["state"] == "passed"
    assert len(api.get(f"/api/v1{path}/revisions").json()) == 1


def test_rest_refuses_what_cannot_be_and_says_why(api, suite, start):
    bad = send(api, f"/suites/{suite.pk}/gate", {"rules": [{"kind": "x"}], "reason": "y"})
    assert (bad.status_code, bad.json()["error"]["code"]) == (400, "rules_invalid")
    run = start()
    assert send(api, f"/runs/{run.pk}/gate", {}).json()["error"]["code"] == "gate_missing"
    send(api, f"/suites/{suite.pk}/gate", {"rules": FLOOR, "reason": "Agreed"})
    assert send(api, f"/runs/{run.pk}/gate", {}).json()["error"]["code"] == "run_not_ended"
    assert send(api, f"/runs/{run.pk}/gate", {"baseline_id": 99999}).status_code == 404


def test_rest_starts_a_release_in_spite_of_the_gate_with_a_reason(api, judged, candidate):
    judged(35)
    body = {"version_id": candidate.pk, "reason": "Friday"}

    refused = send(api, "/releases", body)
    started = send(api, "/releases", {**body, "override_gates": "Legal asked"})

    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "gate_blocks")
    assert started.status_code == 201


def test_a_run_that_was_started_again_while_it_was_judged_gets_no_decision(
    suite, actor, start, finish, monkeypatch
):
    revise(suite, actor)
    run = start()
    finish(run, {"case-1": "error"})
    judge = services.gates.judge

    def slowly(rules, evidence):
        services.run_retry_errors(run=run, by=actor)
        return judge(rules, evidence)

    monkeypatch.setattr(services.gates, "judge", slowly)
    with pytest.raises(Conflict, match="started again while it was judged"):
        services.gate_decide(run=run, by=actor)

    assert not GateDecision.objects.exists()
    assert not Evidence.objects.filter(kind="gate").exists()
