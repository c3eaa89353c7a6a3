"""The label queue: leases, and what two people see at once."""

import threading
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone

from apps.core.errors import Conflict
from apps.core.models import Project, User
from apps.core.permissions import Actor
from apps.feedback import services
from apps.feedback.models import Capture, FailureCase
from tests.waiting import GUARD_S

PEOPLE = 6
CASES = 24


def add_cases(project: Project, count: int) -> list[FailureCase]:
    made = []
    for i in range(count):
        capture = Capture.objects.create(
            project=project,
            external_id=f"c{i}",
            source="api",
            state="anonymized",
            content={"messages": [{"role": "user", "content": "hello"}], "answer": "x"},
            raw_expires_at=timezone.now(),
        )
        made.append(FailureCase.objects.create(project=project, capture=capture, title=f"Case {i}"))
    return made


def person(project: Project, name: str) -> Actor:
    return Actor(project=project, name=name, role="labeller")


@pytest.mark.django_db
def test_two_people_get_different_cases(project):
    add_cases(project, 2)

    first = services.queue_next(project=project, by=person(project, "ann"))
    second = services.queue_next(project=project, by=person(project, "bob"))

    assert first.case != second.case


@pytest.mark.django_db
def test_asking_again_returns_the_case_one_holds(project):
    add_cases(project, 2)
    held = services.queue_next(project=project, by=person(project, "ann"))

    again = services.queue_next(project=project, by=person(project, "ann"))

    assert again.case == held.case


@pytest.mark.django_db
def test_prefetch_leases_a_second_case_beside_the_one_on_screen(project):
    add_cases(project, 3)
    shown = services.queue_next(project=project, by=person(project, "ann")).case

    ahead = services.queue_next(project=project, by=person(project, "ann"), exclude=shown.pk).case

    assert ahead not in (None, shown)


@pytest.mark.django_db
def test_all_leased_says_when_and_nothing_left_says_done(project):
    (case,) = add_cases(project, 1)
    services.queue_next(project=project, by=person(project, "ann"))

    locked = services.queue_next(project=project, by=person(project, "bob"))
    services.case_label(case=case, kind="wrong_value", severity="minor", by=person(project, "ann"))
    done = services.queue_next(project=project, by=person(project, "bob"))

    assert locked.case is None
    assert timedelta(minutes=9) < locked.retry_at - timezone.now() <= timedelta(minutes=10)
    assert done == (None, None)


@pytest.mark.django_db
def test_expired_lease_is_free_again(project):
    (case,) = add_cases(project, 1)
    services.queue_next(project=project, by=person(project, "ann"))
    FailureCase.objects.update(leased_until=timezone.now() - timedelta(seconds=1))

    assert services.queue_next(project=project, by=person(project, "bob")).case == case


@pytest.mark.django_db
def test_heartbeat_extends_the_lease_and_strangers_are_refused(project):
    (case,) = add_cases(project, 1)
    services.case_lease(case=case, by=person(project, "ann"))
    FailureCase.objects.update(leased_until=timezone.now() + timedelta(minutes=1))

    extended = services.case_lease(case=case, by=person(project, "ann"))

    assert extended.leased_until > timezone.now() + timedelta(minutes=9)
    with pytest.raises(Conflict, match="ann is working on this case"):
        services.case_lease(case=case, by=person(project, "bob"))


@pytest.mark.django_db
def test_label_on_somebody_elses_lease_is_refused(project):
    (case,) = add_cases(project, 1)
    services.case_lease(case=case, by=person(project, "ann"))

    with pytest.raises(Conflict, match="ann is working"):
        services.case_label(case=case, kind="wrong_value", severity="minor", by=person(project, "bob"))


@pytest.mark.django_db
def test_skipped_case_goes_behind_the_others(project):
    first, second = add_cases(project, 2)
    services.case_skip(case=first, by=person(project, "ann"))

    assert services.queue_next(project=project, by=person(project, "ann")).case == second
    assert services.queue_next(project=project, by=person(project, "bob")).case == first


def race(project: Project) -> list[int]:
    """Everyone takes cases at once until there are none; returns the ids that were handed out."""
    taken: list[int] = []
    problems: list[Exception] = []
    start = threading.Barrier(PEOPLE)

    def work(name: str) -> None:
        actor = person(project, name)
        try:
            start.wait()
            while True:
                case = services.queue_next(project=project, by=actor).case
                if case is None:
                    return
                taken.append(case.pk)
                # Done with it: out of the queue, still without a label to keep the race short.
                FailureCase.objects.filter(pk=case.pk, leased_by=name).update(state="dismissed")
        except Exception as problem:
            problems.append(problem)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work, args=(f"p{i}",)) for i in range(PEOPLE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(GUARD_S)
    assert problems == []
    return taken


def race_project() -> Project:
    User.objects.create_user("ada")
    return Project.objects.create(name="Race", slug="race")


@pytest.mark.django_db(transaction=True)
def test_nobody_gets_a_case_that_somebody_else_has():
    """In the database of this run: SQLite as an embedded installation has it, or PostgreSQL."""
    project = race_project()
    cases = add_cases(project, CASES)

    taken = race(project)

    assert sorted(taken) == [case.pk for case in cases]
