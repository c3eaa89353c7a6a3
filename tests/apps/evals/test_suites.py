"""Suites, their immutable versions, and the rows that versions share."""

import pytest

from apps.core.errors import Conflict, Refused
from apps.core.models import AuditEvent, Event
from apps.evals import services
from apps.evals.models import Case, Suite, SuiteVersion
from domain.contracts import VerifierSpec
from tests.apps.evals.conftest import make_task

pytestmark = pytest.mark.django_db


def test_a_suite_version_stores_rows_artifact_audit_and_event(suite_version, store):
    assert list(suite_version.cases.values_list("key", flat=True)) == [f"case-{n}" for n in range(4)]
    assert [row["id"] for row in store.iter_jsonl(suite_version.tasks_digest)] == [
        f"case-{n}" for n in range(4)
    ]
    assert AuditEvent.objects.filter(action="suite_version.create", object_id=suite_version.pk).exists()
    assert Event.objects.filter(kind="SuiteVersionCreated", topic__startswith="evals.suite:").exists()


def test_versions_share_the_rows_of_unchanged_cases(suite_version, actor):
    tasks = [make_task(0), make_task(1, reference=99), make_task(2), make_task(7)]

    second = services.suite_version_create(suite=suite_version.suite, tasks=tasks, by=actor)

    before = dict(suite_version.cases.values_list("key", "pk"))
    after = dict(second.cases.values_list("key", "pk"))
    assert second.number == 2
    assert after["case-0"] == before["case-0"]
    assert after["case-2"] == before["case-2"]
    assert after["case-1"] != before["case-1"]
    assert Case.objects.count() == 6


def test_an_old_version_keeps_its_cases_when_a_new_one_is_made(suite_version, actor):
    services.suite_version_create(suite=suite_version.suite, tasks=[make_task(9)], by=actor)

    old = SuiteVersion.objects.get(pk=suite_version.pk)

    assert old.cases.count() == old.count == 4


def test_unchanged_content_is_the_same_version(suite_version, actor):
    again = services.suite_version_create(
        suite=suite_version.suite, tasks=[make_task(n) for n in range(4)], by=actor
    )

    assert again == suite_version
    assert SuiteVersion.objects.count() == 1


def test_another_order_is_another_version(suite_version, actor):
    turned = services.suite_version_create(
        suite=suite_version.suite, tasks=[make_task(n) for n in (3, 2, 1, 0)], by=actor
    )

    assert turned.number == 2
    assert turned.digest != suite_version.digest
    assert Case.objects.count() == 4


def test_a_tag_is_stored_with_its_case_and_old_digests_stay(suite_version, actor):
    tagged = services.suite_version_create(
        suite=suite_version.suite, tasks=[make_task(0, tags={"length": 64}), make_task(1)], by=actor
    )

    assert {case.key: case.tags for case in tagged.cases.all()} == {"case-0": {"length": 64}, "case-1": {}}
    assert tagged.cases.get(key="case-1").versions.count() == 2


@pytest.mark.parametrize(
    ("tasks", "code", "words"),
    [
        ([], "suite_empty", "at least one case"),
        ([make_task(1), make_task(1)], "case_twice", "Case 2 has the same id as case 1"),
        (
            [make_task(1, verifier=VerifierSpec(kind="vibes"))],
            "verifier_unknown",
            "There is no verifier 'vibes'",
        ),
        ([make_task(1, reference="many")], "verifier_invalid", "not one finite number"),
    ],
)
def test_cases_that_could_not_be_judged_are_refused_and_leave_nothing(
    suite_version, actor, tasks, code, words
):
    with pytest.raises(Refused, match=words) as caught:
        services.suite_version_create(suite=suite_version.suite, tasks=tasks, by=actor)

    assert caught.value.code == code
    assert SuiteVersion.objects.count() == 1


def test_a_name_that_only_differs_in_spelling_is_taken(suite_version, project, actor):
    with pytest.raises(Conflict, match="already a suite called"):
        services.suite_create(project=project, name=" sums ", by=actor)


def test_a_name_in_any_script_will_do(project, actor):
    assert services.suite_create(project=project, name="请求", by=actor).slug == "请求"


@pytest.mark.parametrize("name", ["", " — ", "x" * 101])
def test_a_name_must_say_something_and_fit(project, actor, name):
    with pytest.raises(Refused, match="name"):
        services.suite_create(project=project, name=name, by=actor)

    assert not Suite.objects.exists()
