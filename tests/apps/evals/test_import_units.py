"""Imports that a worker reads and stores: seen, stopped, killed, stored once or not at all."""

import json
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from apps.core.errors import Conflict
from apps.core.models import AuditEvent, Event, WorkUnit
from apps.core.units import unit_cancel, units_pump, units_reap
from apps.core.web_units import UnitGone, unit_run
from apps.evals import services
from apps.evals.formats import Options, Upload
from apps.evals.models import Case, Suite, SuiteImport, SuiteVersion
from apps.evals.services import import_units
from apps.evals.services.import_rows import report_of
from apps.evals.services.reading import Choices
from tests.apps.evals.conftest import make_task, text

pytestmark = pytest.mark.django_db

TABLE = "id,question,expected\na,1 + 1?,2\nb,2 + 2?,4\nc,3 + 3?,6\n"
PART = TABLE.replace(",6", ",NaN")
KEEP = Choices(keep_personal_data=True)


@pytest.fixture(autouse=True)
def _store(store):
    """Every import writes an artifact."""


@pytest.fixture(autouse=True)
def _large(monkeypatch):
    """Everything is too much for a request."""
    monkeypatch.setattr("apps.evals.services.imports._AT_ONCE_PLAIN", 10)
    monkeypatch.setattr("apps.evals.services.imports._AT_ONCE_BYTES", 10)
    monkeypatch.setattr("apps.evals.services.imports._AT_ONCE_CASES", 1)


@pytest.fixture
def send(project, actor):
    def start(data=TABLE, name="Sums", choices=KEEP, by=actor):
        files = [Upload("sums.csv", data.encode())]
        return services.suite_import_start(project=project, name=name, uploads=files, choices=choices, by=by)

    return start


@pytest.fixture
def ready(send):
    """Read and shown, not confirmed."""

    def make(*args, **fields):
        row = send(*args, **fields)
        work()
        row.refresh_from_db()
        return row

    return make


def message_of(unit):
    return {"unit_id": unit.pk, "attempt": unit.attempt, "kind": unit.kind, "payload": unit.payload}


def taken():
    """The message of the unit that waits."""
    units_pump()
    return message_of(WorkUnit.objects.get(state="sent"))


def work():
    """Play the worker until nothing waits."""
    while True:
        units_pump()
        sent = list(WorkUnit.objects.filter(state="sent"))
        if not sent:
            return
        for unit in sent:
            unit_run(message=message_of(unit))


def confirm(row, actor):
    return services.suite_import_confirm(row=row, digest=row.digest, by=actor)


def test_a_large_file_is_read_by_a_worker_once(send, actor):
    row = send()
    message = taken()
    assert row.state == "reading"
    with pytest.raises(Conflict, match="still being read"):
        services.suite_import_confirm(row=row, digest="", by=actor)

    unit_run(message=message)
    unit_run(message=message)

    row.refresh_from_db()
    assert (row.state, row.done) == ("ready", 3)
    assert WorkUnit.objects.get().state == "done"


def test_a_large_import_is_confirmed_at_once_and_stored_by_a_worker(ready, actor):
    row = ready()

    assert confirm(row, actor) is None
    assert confirm(row, actor) is None  # twice is one
    row.refresh_from_db()
    assert (row.state, Suite.objects.count()) == ("importing", 0)
    work()

    row.refresh_from_db()
    version = row.version
    assert (row.state, version.count, version.note) == ("done", 3, "Imported from sums.csv")
    assert (row.upload, row.prepared, row.report) == (None, None, None)
    assert confirm(row, actor) == version
    assert AuditEvent.objects.get(action="suite.import").actor == "ada"
    assert Event.objects.filter(topic=row.topic, kind="SuiteImported").count() == 1


def test_confirming_a_large_import_costs_a_request_nothing_that_grows(ready, actor):
    rows = "".join(f"{n},q{n},{n}\n" for n in range(300))
    few, many = ready(), ready(f"id,question,expected\n{rows}", "Many")

    def cost(row):
        with CaptureQueriesContext(connection) as queries:
            confirm(row, actor)
        return len(queries)

    assert cost(few) == cost(many)
    assert not Case.objects.exists()


def test_a_killed_worker_s_import_is_stored_once_by_the_next(ready, actor, monkeypatch):
    row = ready()
    confirm(row, actor)
    first = taken()

    class Killed(BaseException):
        pass

    def killed(*args, **kwargs):
        raise Killed

    with monkeypatch.context() as dying:
        dying.setattr("apps.evals.services.import_units.suite_version_store", killed)
        with pytest.raises(Killed):
            unit_run(message=first)
    assert not Suite.objects.exists()
    WorkUnit.objects.filter(state="running").update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    units_reap()
    work()
    unit_run(message=first)

    row.refresh_from_db()
    assert (row.state, SuiteVersion.objects.count(), row.version.count) == ("done", 1, 3)


def test_a_worker_killed_after_it_stored_stores_nothing_twice(ready, actor):
    row = ready()
    confirm(row, actor)
    message = taken()
    unit_run(message=message)
    WorkUnit.objects.filter(pk=message["unit_id"]).update(state="pending")  # its end was not written

    work()

    assert WorkUnit.objects.get(pk=message["unit_id"]).state == "done"
    assert SuiteVersion.objects.count() == 1
    assert AuditEvent.objects.filter(action="suite.import").count() == 1


def test_an_import_that_cannot_be_stored_says_why_and_leaves_nothing(ready, actor, monkeypatch, page):
    row = ready()
    confirm(row, actor)

    def fail(*args, **kwargs):
        raise OSError("disk full of Maria Gonzalez")

    with monkeypatch.context() as broken:
        broken.setattr("apps.evals.services.import_units.cases_stage", fail)
        for _ in range(5):
            WorkUnit.objects.filter(state="pending").update(not_before=None)
            work()

    row.refresh_from_db()
    assert (row.state, Suite.objects.count(), Case.objects.count()) == ("failed", 0, 0)
    assert row.error.startswith("OSError at ")
    assert "Gonzalez" not in row.error
    assert "Nothing was imported. OSError" in text(page.get(row.get_absolute_url()))
    with pytest.raises(Conflict, match="Read them again"):
        confirm(row, actor)
    services.suite_import_change(row=row, choices=KEEP, by=actor)  # the files are still there
    work()
    row.refresh_from_db()
    assert row.state == "ready"


def test_stopping_goes_back_to_the_preview_and_nothing_comes_late(ready, actor):
    row = ready()
    confirm(row, actor)
    message = taken()

    services.suite_import_stop(row=row, by=actor)
    unit_run(message=message)

    row.refresh_from_db()
    assert (row.state, Suite.objects.count()) == ("ready", 0)
    assert AuditEvent.objects.filter(action="suite_import.stop").exists()
    with pytest.raises(Conflict, match="Nothing is being imported"):
        services.suite_import_stop(row=row, by=actor)
    confirm(row, actor)  # and can be confirmed again
    work()
    assert SuiteVersion.objects.get().count == 3


def test_one_that_is_stopped_while_it_is_stored_ends_without_a_version(ready, actor, monkeypatch):
    row = ready()
    confirm(row, actor)
    message = taken()
    stage = import_units.cases_stage

    def stopped(tasks, progress):
        services.suite_import_stop(row=row, by=actor)
        return stage(tasks)  # too quick to have said how far it is

    monkeypatch.setattr("apps.evals.services.import_units.cases_stage", stopped)
    unit_run(message=message)

    row.refresh_from_db()
    assert (row.state, Suite.objects.count()) == ("ready", 0)


def test_a_worker_hears_of_a_stop_at_its_next_sign_of_progress(ready, actor, monkeypatch):
    row = ready()
    confirm(row, actor)
    message = taken()
    gone = []

    def stage(tasks, progress):
        services.suite_import_stop(row=row, by=actor)
        try:
            progress(1)
        except UnitGone:
            gone.append(True)
            raise

    monkeypatch.setattr("apps.evals.services.import_units.cases_stage", stage)
    unit_run(message=message)

    assert gone == [True]


def test_what_is_being_imported_is_dropped_with_its_unit(ready, actor):
    row = ready()
    confirm(row, actor)
    message = taken()

    services.suite_import_discard(row=row, by=actor)
    unit_run(message=message)

    assert not SuiteImport.objects.exists()
    assert not Suite.objects.exists()
    assert not WorkUnit.objects.open().exists()


def test_reading_otherwise_waits_until_an_import_is_stopped(ready, actor):
    row = ready()
    confirm(row, actor)
    row.refresh_from_db()

    with pytest.raises(Conflict, match="Stop that first"):
        services.suite_import_change(row=row, choices=KEEP, by=actor)


def test_a_unit_that_a_person_cancels_fails_its_import(ready, actor):
    row = ready()
    confirm(row, actor)

    unit_cancel(unit=WorkUnit.objects.get(state="pending"), by=actor)

    row.refresh_from_db()
    assert (row.state, row.error) == ("failed", "Cancelled by ada.")


def test_a_suite_that_moved_meanwhile_is_compared_again_before_anything_is_stored(ready, actor, page):
    suite = services.suite_create(project=actor.project, name="Sums", by=actor)
    row = ready()
    confirm(row, actor)
    services.suite_version_create(suite=suite, tasks=[make_task(1)], by=actor)

    work()

    row.refresh_from_db()
    assert (row.state, report_of(row)["against"], SuiteVersion.objects.count()) == ("ready", 1, 1)
    assert "a newer version than the one in the preview" in text(page.get(row.get_absolute_url()))
    confirm(row, actor)
    work()
    assert SuiteVersion.objects.first().number == 2


def test_a_late_reading_of_other_choices_is_not_taken(send, actor):
    row = send()
    late = taken()
    changed = Choices(options=Options(family="other"), keep_personal_data=True)
    services.suite_import_change(row=row, choices=changed, by=actor)

    unit_run(message=late)

    row.refresh_from_db()
    assert row.state == "reading"
    work()
    row.refresh_from_db()
    assert report_of(row)["rows"][0]["family"] == "other"


def test_a_large_file_that_cannot_be_read_says_so(send):
    row = send("a,b\n1,2\n3,4\n")

    work()

    row.refresh_from_db()
    assert row.state == "failed"
    assert "no column holds what is asked" in row.error


def test_work_that_nobody_does_is_said_to_have_failed_and_work_that_waits_is_left(send):
    lost, waiting = send(), send(name="Other")
    WorkUnit.objects.filter(owner=lost.topic).delete()
    SuiteImport.objects.update(read_at=timezone.now() - timedelta(hours=2))

    services.suite_imports_sweep()

    lost.refresh_from_db()
    waiting.refresh_from_db()
    assert lost.state == "failed"
    assert lost.error == "Reading did not come to an end. Read it again, or drop it."
    assert waiting.state == "reading"


def test_an_import_that_runs_does_not_expire_under_its_worker(ready, actor):
    row = ready()
    confirm(row, actor)
    SuiteImport.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    services.suite_imports_sweep()
    work()

    assert SuiteVersion.objects.get().count == 3


# Pages


def url(name, *args):
    return reverse(f"evals:{name}", args=args)


def test_the_page_shows_how_far_it_is_stops_it_and_goes_on_to_the_version(page, ready):
    row = ready()
    answer = page.post(url("suite_import_confirm", row.pk), {"digest": row.digest})
    assert answer.url == row.get_absolute_url()

    SuiteImport.objects.update(done=1, total=3)
    shown = text(page.get(row.get_absolute_url()))
    assert "1 of 3 cases" in shown
    assert f'data-live="{row.topic}"' in shown
    assert url("suite_import_stop", row.pk) in shown

    assert page.post(url("suite_import_stop", row.pk)).url == row.get_absolute_url()
    assert "Import 3 cases" in text(page.get(row.get_absolute_url()))
    page.post(url("suite_import_confirm", row.pk), {"digest": row.digest})
    work()

    version = SuiteVersion.objects.get()
    assert page.get(row.get_absolute_url()).url == version.get_absolute_url()
    live = page.get(row.get_absolute_url(), headers={"HX-Request": "true", "HX-Target": "import"})
    assert live.headers["HX-Redirect"] == version.get_absolute_url()


# REST


def post(api, path, body):
    return api.post(f"/api/v1{path}", body, content_type="application/json")


def test_a_large_import_is_accepted_and_asked_after(api):
    files = {"files": SimpleUploadedFile("sums.csv", TABLE.encode())}
    options = json.dumps({"keep_personal_data": True})
    row = api.post("/api/v1/suites/imports", {"name": "Sums", "options": options, **files}).json()
    place = f"/api/v1/suites/imports/{row['id']}"
    assert row["state"] == "reading"
    work()
    row = api.get(place).json()

    accepted = post(api, f"/suites/imports/{row['id']}/confirm", {"digest": row["digest"]})

    assert (accepted.status_code, accepted.headers["Location"]) == (202, place)
    assert accepted.json()["state"] == "importing"
    stopped = post(api, f"/suites/imports/{row['id']}/stop", {})
    assert (stopped.status_code, stopped.json()["state"]) == (200, "ready")
    post(api, f"/suites/imports/{row['id']}/confirm", {"digest": row["digest"]})
    work()
    done = api.get(place).json()
    assert (done["state"], done["suite_version_id"]) == ("done", SuiteVersion.objects.get().pk)
    again = post(api, f"/suites/imports/{row['id']}/confirm", {"digest": row["digest"]})
    assert (again.status_code, again.json()["id"]) == (201, done["suite_version_id"])


def test_a_large_file_that_is_imported_at_once_is_accepted(api):
    file = SimpleUploadedFile("sums.csv", TABLE.encode())

    accepted = api.post("/api/v1/suites/import", {"name": "Sums", "file": file, "keep_personal_data": True})

    assert accepted.status_code == 202
    place = accepted.headers["Location"]
    assert api.get(place).json()["state"] == "reading"
    work()
    done = api.get(place).json()
    assert done["state"] == "done"
    assert SuiteVersion.objects.get(pk=done["suite_version_id"]).count == 3


def test_what_is_imported_at_once_is_whole_or_not_at_all_and_says_why(api):
    file = SimpleUploadedFile("sums.csv", PART.encode())
    made = api.post("/api/v1/suites/import", {"name": "Sums", "file": file, "keep_personal_data": True})

    work()

    row = api.get(made.headers["Location"]).json()
    assert row["state"] == "failed"
    assert "1 part of sums.csv would be left out: line 4, row: expected: NaN is no value" in row["error"]
    assert not Suite.objects.exists()


def test_many_cases_that_must_be_masked_become_a_version_outside_the_request(api, project, actor):
    suite = services.suite_create(project=project, name="Letters", by=actor)
    asked = {"role": "user", "content": "Who wrote? Dear Karen Lewis, hello."}
    task = make_task(1).model_dump(mode="json", exclude_defaults=True) | {"messages": [asked]}

    accepted = post(api, f"/suites/{suite.pk}/versions", {"tasks": [task], "note": "by hand"})
    assert accepted.status_code == 202
    work()

    version = suite.versions.get()
    assert version.note == "by hand"
    assert "Karen" not in json.dumps(version.cases.get().task)
