"""Files shown before they are imported, then imported exactly as shown, or dropped."""

import json
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone

from apps.core.crypto import decrypt_bytes
from apps.core.errors import Conflict, Refused
from apps.core.models import AuditEvent, Project
from apps.core.permissions import Actor
from apps.evals import services
from apps.evals.formats import Options, Upload
from apps.evals.models import Case, Suite, SuiteImport, SuiteVersion
from apps.evals.services.import_rows import report_of
from apps.evals.services.reading import Choices
from tests.apps.evals.conftest import make_task, text

pytestmark = pytest.mark.django_db

TABLE = "id,question,expected\na,1 + 1?,2\nb,2 + 2?,4\nc,3 + 3?,NaN\n"
KEEP = Choices(keep_personal_data=True)


@pytest.fixture(autouse=True)
def _store(store):
    """Every import writes an artifact."""


@pytest.fixture
def send(project, actor):
    def start(data=TABLE, name="Sums", choices=KEEP, filename="sums.csv", by=actor):
        files = data if isinstance(data, list) else [Upload(filename, data.encode())]
        return services.suite_import_start(project=project, name=name, uploads=files, choices=choices, by=by)

    return start


def confirm(row, actor):
    return services.suite_import_confirm(row=row, digest=row.digest, by=actor)


def test_a_preview_says_what_would_be_imported_and_imports_nothing(send):
    row = send()

    report = report_of(row)
    assert (row.state, report["format"], report["count"]) == ("ready", "csv", 2)
    assert report["left_out"] == [["line 4", "row", "expected: NaN is no value"]]
    assert report["rows"][0]["id"] == "a"
    assert report["changes"] == {"new": 2, "changed": 0, "unchanged": 0, "removed": 0, "removed_held_out": 0}
    assert not Suite.objects.exists()
    assert AuditEvent.objects.filter(action="suite_import.start").exists()


def test_confirming_imports_exactly_what_was_shown_and_leaves_no_file_behind(send, actor):
    row = send()

    version = confirm(row, actor)

    row.refresh_from_db()
    stored = [case.task for case in version.cases.order_by("pk")]
    assert stored == [as_stored("a", "1 + 1?", 2), as_stored("b", "2 + 2?", 4)]
    assert version.note == "Imported from sums.csv; left out: 1"
    assert (row.state, row.version, row.upload, row.prepared, row.report) == (
        "done",
        version,
        None,
        None,
        None,
    )
    assert AuditEvent.objects.get(action="suite.import").detail["kept_personal_data"] is True


def as_stored(key, asked, expected):
    messages = [{"role": "user", "content": asked}]
    verifier = {"kind": "numeric"}
    return {"id": key, "family": "sums", "messages": messages, "verifier": verifier, "reference": expected}


def test_confirming_twice_gives_the_same_version(send, actor):
    row = send()

    assert confirm(row, actor) == confirm(row, actor)
    assert SuiteVersion.objects.count() == 1


def test_what_was_read_otherwise_since_is_not_imported_by_an_old_page(send, actor):
    row = send()
    shown = row.digest
    changed = services.suite_import_change(
        row=row, choices=Choices(options=Options(family="other"), keep_personal_data=True), by=actor
    )

    with pytest.raises(Conflict, match="The preview has changed since"):
        services.suite_import_confirm(row=row, digest=shown, by=actor)

    assert changed.digest != shown
    assert {case.family for case in confirm(changed, actor).cases.all()} == {"other"}


def test_a_newer_version_is_compared_with_before_anything_is_imported(send, actor):
    confirm(send(), actor)
    row = send("id,question,expected\na,1 + 1?,2\nb,2 + 2?,5\n")
    assert report_of(row)["changes"] == {
        "new": 0, "changed": 1, "unchanged": 1, "removed": 0, "removed_held_out": 0,
    }  # fmt: skip
    services.suite_version_create(suite=Suite.objects.get(), tasks=[make_task(1)], by=actor)

    with pytest.raises(Conflict, match="a newer version than the one in the preview"):
        confirm(row, actor)

    row.refresh_from_db()
    assert report_of(row)["against"] == 2
    assert report_of(row)["changes"]["removed"] == 1
    assert confirm(row, actor).number == 3


def test_an_expired_preview_is_gone_with_its_file(send, actor):
    row = send()
    SuiteImport.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    with pytest.raises(Conflict, match="expired"):
        confirm(row, actor)
    services.suite_imports_sweep()

    assert not SuiteImport.objects.exists()


def test_a_dropped_import_is_gone(send, actor):
    row = send()

    services.suite_import_discard(row=row, by=actor)

    assert not SuiteImport.objects.exists()
    assert AuditEvent.objects.filter(action="suite_import.discard").exists()


def test_what_was_sent_is_stored_encrypted(send):
    row = send('id,question,expected\na,"Maria Gonzalez asks: 1 + 1?",2\n')

    for blob in (row.upload, row.prepared, row.report):
        assert b"Gonzalez" not in bytes(blob)
    assert b"Gonzalez" not in json.dumps(row.options).encode()
    assert decrypt_bytes(bytes(row.upload))


def test_personal_data_is_replaced_alike_in_question_and_expected(send, actor):
    row = send(
        'id,question,expected\na,"Who wrote? Dear Karen Lewis, hello.",Karen Lewis\n', choices=Choices()
    )

    task = confirm(row, actor).cases.get().task
    assert "Karen" not in json.dumps(task)
    assert task["reference"] in task["messages"][0]["content"]


def test_personal_data_is_replaced_in_what_a_verifier_compares_with(send, actor):
    data = json.dumps({"input": "Who wrote? Dear Karen Lewis, hello.", "expected": "Karen Lewis"})

    row = send(data, filename="a.jsonl", choices=Choices(options=Options(verifier="contains")))

    task = confirm(row, actor).cases.get().task
    (wanted,) = task["verifier"]["params"]["texts"]
    assert "Karen" not in json.dumps(task)
    assert wanted in task["messages"][0]["content"]


def test_a_row_whose_id_names_somebody_is_left_out(send):
    row = send("id,question,expected\nMaria Gonzalez,1 + 1?,2\nb,2 + 2?,4\n", choices=Choices())

    report = report_of(row)
    assert report["count"] == 1
    assert report["left_out"] == [["line 2", "case", report["left_out"][0][2]]]
    assert "looks like a person's name" in report["left_out"][0][2]


def test_sources_are_split_alike_in_every_import(send, actor):
    rows = "".join(f"{n},q{n},{n},s{n % 20}\n" for n in range(200))
    choices = Choices(keep_personal_data=True, validation=0.2, held_out=0.3)

    version = confirm(send(f"id,question,expected,source\n{rows}", choices=choices), actor)

    by_source = {}
    for case in version.cases.all():
        by_source.setdefault(case.source, set()).add(case.split)
    assert all(len(splits) == 1 for splits in by_source.values())
    assert {split for splits in by_source.values() for split in splits} == {"train", "validation", "held_out"}
    other = confirm(
        send(f"id,question,expected,source\n{rows[:400]}x,qx,1,s1\n".replace("\n\n", "\n"), "Other", choices),
        actor,
    )
    assert {case.split for case in other.cases.filter(source="s1")} == by_source["s1"]


@pytest.mark.parametrize("shares", [(0.7, 0.5), (-0.1, 0.2), (0.0, 1.5)])
def test_impossible_shares_are_refused(send, shares):
    with pytest.raises(Refused, match="shares"):
        send(choices=Choices(validation=shares[0], held_out=shares[1]))


def test_held_out_cases_that_the_file_lacks_stay_or_are_counted_as_removed(send, actor):
    first = "id,question,expected,split\na,1 + 1?,2,train\nb,2 + 2?,4,test\n"
    confirm(send(first), actor)

    kept = send("id,question,expected\na,1 + 1?,3\n")
    gone = send(
        "id,question,expected\na,1 + 1?,3\n", choices=Choices(keep_personal_data=True, keep_held_out=False)
    )

    assert report_of(kept)["kept_held_out"] == 1
    assert report_of(kept)["changes"]["removed"] == 0
    assert (report_of(gone)["changes"]["removed"], report_of(gone)["changes"]["removed_held_out"]) == (1, 1)
    assert list(confirm(kept, actor).cases.filter(split="held_out").values_list("key", flat=True)) == ["b"]


@pytest.mark.parametrize(
    ("name", "words"),
    [("", "Give the suite a name"), (" — ", "Give the suite a name"), ("x" * 101, "longer")],
)
def test_a_suite_needs_a_name(send, name, words):
    with pytest.raises(Refused, match=words):
        send(name=name)


def test_files_that_leave_nothing_are_refused_with_the_reasons(send):
    with pytest.raises(Refused) as caught:
        send("question,expected\nq,NaN\n")

    assert (
        "no case is left. line 2, row: expected: NaN is no value. Nothing was imported."
        in caught.value.message
    )


def test_files_together_have_a_limit(send, monkeypatch):
    monkeypatch.setattr("apps.evals.services.reading.MAX_BYTES", 50)

    with pytest.raises(Refused, match="the files together are larger"):
        send([Upload("a.csv", b"x" * 40), Upload("b.csv", b"y" * 40)])


# pages and API


def url(name, *args):
    return reverse(f"evals:{name}", args=args)


def test_the_page_shows_cases_columns_what_is_left_out_and_imports_what_it_shows(page):
    file = SimpleUploadedFile("sums.csv", TABLE.encode())
    row_url = page.post(url("suite_import"), {"name": "Sums", "file": file}).url

    body = text(page.get(row_url))
    row = SuiteImport.objects.get()
    assert "2 cases from CSV" in body
    assert "1 + 1?" in body
    assert "line 4" in body
    assert 'name="column_1"' in body
    again = page.post(
        url("suite_import_change", row.pk),
        {
            "name": "Sums",
            "column_0": "id",
            "column_1": "expected",
            "column_2": "input",
            "keep_held_out": "on",
        },
    )
    assert again.url == row_url
    assert "3 cases" not in text(page.get(row_url))
    row.refresh_from_db()
    done = page.post(url("suite_import_confirm", row.pk), {"digest": row.digest})
    assert done.url == SuiteVersion.objects.get().get_absolute_url()
    assert page.get(row_url).status_code == 302


def test_a_choice_that_cannot_be_read_is_said_beside_the_form_and_changes_nothing(page, send):
    row = send()

    answer = page.post(
        url("suite_import_change", row.pk), {"name": "Sums", "column_0": "input", "column_1": "input"}
    )

    assert answer.status_code == 400
    assert "two columns are read as input" in text(answer)
    row.refresh_from_db()
    assert row.state == "ready"


def test_several_files_come_together(page):
    criteria = [{"type": "string_check", "name": "m", "input": "{{sample.output_text}}", "operation": "eq",
                 "reference": "{{item.a}}"}]  # fmt: skip
    files = [
        SimpleUploadedFile("rows.jsonl", b'{"item": {"input": "q", "a": "x"}}'),
        SimpleUploadedFile(
            "eval.json", json.dumps({"object": "eval", "testing_criteria": criteria}).encode()
        ),
    ]

    row_url = page.post(url("suite_import"), {"name": "Hosted", "file": files}).url

    assert "1 case from OpenAI Evals, hosted" in text(page.get(row_url))


def test_a_page_can_drop_the_files(page, send):
    row = send()

    answer = page.post(url("suite_import_discard", row.pk))

    assert answer.url == url("suites")
    assert not SuiteImport.objects.exists()


def test_text_of_a_file_is_shown_as_text(page, send):
    row = send("id,question,expected\na,<script>alert(1)</script>,2\n")

    body = page.get(url("suite_import_preview", row.pk)).content.decode()

    assert "<script>alert(1)" not in body


def test_another_project_and_another_person_do_not_find_an_import(page, client, viewer, send, actor):
    other = Actor(project=actor.project, name="somebody", role="engineer")
    row = send(by=other)
    assert page.get(url("suite_import_preview", row.pk)).status_code == 200  # an admin may see held-out cases
    elsewhere = Project.objects.create(name="Other", slug="other")
    SuiteImport.objects.update(project=elsewhere)
    assert page.get(url("suite_import_preview", row.pk)).status_code == 404
    client.force_login(viewer.user)
    assert client.get(url("suite_import_preview", row.pk)).status_code == 403


def test_the_api_shows_and_imports(api):
    files = {"files": SimpleUploadedFile("sums.csv", TABLE.encode())}
    options = json.dumps({"keep_personal_data": True, "family": "adding"})

    made = api.post("/api/v1/suites/imports", {"name": "Sums", "options": options, **files})
    row = made.json()
    again = api.post(
        f"/api/v1/suites/imports/{row['id']}/read",
        {"columns": {"question": "input"}},
        content_type="application/json",
    ).json()
    wrong = api.post(
        f"/api/v1/suites/imports/{row['id']}/confirm",
        {"digest": row["digest"]},
        content_type="application/json",
    )
    done = api.post(
        f"/api/v1/suites/imports/{row['id']}/confirm",
        {"digest": again["digest"]},
        content_type="application/json",
    )

    assert made.status_code == 201
    assert row["report"]["left_out"] == [
        {"where": "line 4", "name": "row", "reason": "expected: NaN is no value"}
    ]
    assert row["report"]["rows"][0]["family"] == "adding"
    assert wrong.status_code == 409
    assert (done.status_code, done.json()["count"]) == (201, 2)
    assert api.get(f"/api/v1/suites/imports/{row['id']}").json()["suite_version_id"] == done.json()["id"]
    assert api.delete(f"/api/v1/suites/imports/{row['id']}").status_code == 409


@pytest.mark.parametrize("options", ["[", "[]", '{"nothing": 1}', '{"validation": "much"}'])
def test_the_api_says_which_options_there_are(api, options):
    files = {"files": SimpleUploadedFile("sums.csv", TABLE.encode())}

    answer = api.post("/api/v1/suites/imports", {"name": "Sums", "options": options, **files})

    assert answer.status_code == 400
    assert "options is no JSON object with: name, format" in answer.json()["error"]["message"]


def test_importing_at_once_takes_any_format_whole_or_not_at_all(api):
    whole = {"file": SimpleUploadedFile("sums.csv", TABLE.replace("NaN", "6").encode()), "name": "Sums"}
    part = {"file": SimpleUploadedFile("sums.csv", TABLE.encode()), "name": "Other"}

    good, bad = api.post("/api/v1/suites/import", whole), api.post("/api/v1/suites/import", part)

    assert (good.status_code, good.json()["count"]) == (201, 3)
    assert bad.status_code == 400
    assert "line 4, row: expected: NaN is no value" in bad.json()["error"]["message"]
    assert Case.objects.count() == 3
