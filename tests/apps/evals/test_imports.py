"""Import and export of suites as JSONL."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.core.errors import Refused
from apps.core.models import AuditEvent
from apps.evals import services
from apps.evals.formats import Upload
from apps.evals.models import Case, Suite, SuiteImport, SuiteVersion
from apps.evals.services.lines import parse_lines, written_lines
from apps.evals.services.reading import Choices
from artifacts import get_store
from domain.contracts import ChatMessage, HiddenCheck, TaskSpec, VerifierSpec
from tests.apps.evals.conftest import make_task, text

pytestmark = pytest.mark.django_db

ROW = {
    "id": "a",
    "family": "sums",
    "messages": [{"role": "user", "content": "1 + 1?"}],
    "verifier": {"kind": "numeric"},
    "reference": 2,
}


def line(**changes):
    return json.dumps({**ROW, **changes}, ensure_ascii=False).encode()


def load(project, actor, data, **options):
    return services.suite_import_jsonl(
        project=project, name="Imported", filename="cases.jsonl", data=data, by=actor, **options
    ).version


@pytest.fixture(autouse=True)
def _store(store):
    """Every import writes an artifact."""


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (b"{", "not JSON"),
        (b"[1]", "a case must be a JSON object"),
        (b'{"id": "b", "id": "c"}', "the key “id” stands twice"),
        (line(id="b", reference=2).replace(b"2}", b"NaN}"), "NaN is not a number that JSON allows"),
        (line(id="b").replace(b'"reference": 2', b'"reference": 1e999'), "a number is out of range"),
        (line(id="b") + b"\xff", "not UTF-8"),
        (line(id="b", verifier={"kind": "vibes"}), "There is no verifier 'vibes'"),
        (line(id="b", reference="many"), "not one finite number"),
        (line(id="b", extra=1), "extra: Extra inputs are not permitted"),
        (line(id="b", messages=[]), "messages: "),
        (line(), "the id “a” stands on line 1 already"),
        (b'{"id": "\\ud800"}', "half of a surrogate pair"),
        (b'{"id": "\\u0000"}', "NUL character"),
        (b'{"id":' + b"[" * 200 + b"]" * 200 + b"}", "nested deeper than 64"),
        (b'{"id":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b'"' + b"x" * (16 * 2**20) + b'"', "longer than 16 MB"),
        (b'{"id": ' + b"1" * 5000 + b"}", "digits"),
    ],
)
def test_a_bad_line_is_named_with_file_and_reason_and_nothing_is_imported(project, actor, second, reason):
    with pytest.raises(Refused) as caught:
        load(project, actor, line() + b"\n" + second + b"\n")

    assert caught.value.message.startswith("cases.jsonl, line 2: ")
    assert reason in caught.value.message
    assert caught.value.message.endswith("Nothing was imported.")
    assert caught.value.detail == {"file": "cases.jsonl", "line": 2}
    assert not Suite.objects.exists()
    assert not Case.objects.exists()


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf", b"\n \r\n"])
def test_a_file_without_cases_is_refused(project, actor, data):
    with pytest.raises(Refused, match=r"cases\.jsonl: the file holds no case\. Nothing was imported\."):
        load(project, actor, data)


def test_a_file_that_is_too_large_is_refused_before_it_is_read(project, actor):
    with pytest.raises(Refused, match="larger than 64 MB"):
        load(project, actor, b" " * (64 * 1024 * 1024 + 1))


def test_a_byte_order_mark_blank_lines_and_crlf_do_not_matter(project, actor):
    version = load(project, actor, b"\xef\xbb\xbf" + line() + b"\r\n\r\n" + line(id="b"))

    assert list(version.cases.values_list("key", flat=True)) == ["a", "b"]


def test_a_line_separator_inside_a_text_does_not_end_the_line(project, actor):
    said = "one\u2028two\u2029three\x85four\x0bfive"

    version = load(
        project, actor, line(messages=[{"role": "user", "content": said}]), keep_personal_data=True
    )

    assert version.cases.get().task["messages"][0]["content"] == said


def test_an_import_under_a_known_name_is_its_next_version(project, actor):
    load(project, actor, line())

    second = services.suite_import_jsonl(
        project=project, name=" imported", filename="b.jsonl", data=line(id="b"), by=actor
    ).version

    assert second.number == 2
    assert Suite.objects.count() == 1
    assert second.note == "Imported from b.jsonl"


def test_a_refused_import_leaves_no_empty_suite_behind(project, actor, monkeypatch):
    def refuse(**_):
        raise Refused("no")

    monkeypatch.setattr("apps.evals.services.import_units.suite_version_store", refuse)

    with pytest.raises(Refused):
        load(project, actor, line())

    assert not Suite.objects.exists()


PERSONAL = line(
    messages=[
        {"role": "user", "content": "Reply to Maria Gonzalez, maria.gonzalez@corp.example.com: 1 + 1?"}
    ],
    source="maria.gonzalez@corp.example.com",
)


def everything(version):
    rows = list(get_store().iter_jsonl(version.tasks_digest))
    return json.dumps([rows, list(version.cases.values("task", "source", "key"))])


def test_personal_data_is_replaced_everywhere_and_that_is_recorded(project, actor):
    version = load(project, actor, PERSONAL)

    stored = everything(version)
    assert "Gonzalez" not in stored
    assert "maria" not in stored.lower()
    assert "<PERSON" not in stored
    assert "1 + 1?" in stored
    assert AuditEvent.objects.get(action="suite.import").detail["kept_personal_data"] is False


def test_personal_data_is_kept_only_when_asked_for_and_that_is_recorded(project, actor):
    version = load(project, actor, PERSONAL, keep_personal_data=True)

    assert "Maria Gonzalez" in everything(version)
    assert AuditEvent.objects.get(action="suite.import").detail["kept_personal_data"] is True


def test_an_id_that_names_a_person_is_refused_without_being_quoted(project, actor):
    with pytest.raises(Refused) as caught:
        load(project, actor, line(id="Maria Gonzalez"))

    assert "line 1: id: looks like a person's name" in caught.value.message
    assert "Gonzalez" not in caught.value.message


def test_an_export_imports_as_the_same_version(project, actor):
    first = load(project, actor, PERSONAL + b"\n" + line(id="b", tags={"length": 3}, source="s"))

    data = services.suite_export_jsonl(suite_version=first)
    again = load(project, actor, data)
    elsewhere = services.suite_import_jsonl(
        project=project, name="Copy", filename="copy.jsonl", data=data, by=actor
    ).version

    assert again == first
    assert elsewhere.digest == first.digest
    assert elsewhere.tasks_digest == first.tasks_digest
    assert SuiteVersion.objects.count() == 2


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
MESSAGES = st.builds(
    ChatMessage, role=st.sampled_from(["system", "user", "assistant"]), content=TEXTS, name=st.none() | TEXTS
)
TASKS = st.builds(
    TaskSpec,
    id=NAMES,
    family=NAMES,
    messages=st.lists(MESSAGES, min_size=1, max_size=3).map(tuple),
    verifier=st.just(VerifierSpec(kind="exact")),
    reference=TEXTS.filter(str.strip).filter(lambda text: any(not c.isspace() for c in text)),
    source=TEXTS,
    max_tokens=st.integers(1, 32_768),
    tags=st.dictionaries(TEXTS, JSON, max_size=3),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(TASKS, min_size=1, max_size=4, unique_by=lambda task: task.id))
def test_what_is_written_reads_back_as_it_was(tasks):
    data = written_lines(tasks)

    assert [found.task for found in parse_lines(filename="x", data=data)] == tasks


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(TASKS, min_size=1, max_size=3, unique_by=lambda task: task.id))
def test_export_of_import_is_what_was_imported(project, actor, tasks):
    version = load(project, actor, written_lines(tasks), keep_personal_data=True)

    data = services.suite_export_jsonl(suite_version=version)
    assert [found.task for found in parse_lines(filename="x", data=data)] == tasks
    assert load(project, actor, data) == version


def test_what_is_exported_is_what_is_run(suite_version):
    data = services.suite_export_jsonl(suite_version=suite_version)

    rows = [json.loads(row) for row in data.splitlines()]
    assert rows == list(get_store().iter_jsonl(suite_version.tasks_digest))
    assert [found.task for found in parse_lines(filename="x", data=data)] == [make_task(n) for n in range(4)]


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
RICH = st.builds(
    TaskSpec,
    id=NAMES,
    family=NAMES,
    messages=st.lists(MESSAGES, max_size=2).map(
        lambda said: (*said, ChatMessage(role="user", content=[{"type": "text", "text": "Look"}, PICTURE]))
    ),
    verifier=st.just(VerifierSpec(kind="numeric", params={"tolerance": 0.5})),
    reference=st.integers(-(10**6), 10**6),
    environment=st.sampled_from(["single_turn", "coding", "tools"]),
    environment_params=st.dictionaries(TEXTS, JSON, max_size=3),
    hidden=st.none()
    | st.builds(HiddenCheck, verifier=st.just(VerifierSpec(kind="numeric")), reference=st.integers(0, 99)),
    tools=st.lists(st.just(TOOL), max_size=2).map(tuple),
    source=TEXTS,
    max_tokens=st.integers(1, 32_768),
    tags=st.dictionaries(TEXTS, JSON, max_size=2)
    | st.sampled_from([{"split": "held_out"}, {"split": "test"}, {"canary": True}]),
)


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(RICH, min_size=1, max_size=3, unique_by=lambda task: task.id))
def test_langfuse_8104_an_export_imports_to_identical_cases(project, actor, tasks):
    """With environment, tools, hidden checks, pictures and splits, through the preview as well."""
    first = load(project, actor, written_lines(tasks), keep_personal_data=True)
    data = b"".join(services.suite_export_stream(suite_version=first))

    row = services.suite_import_start(
        project=project, name="Elsewhere", uploads=[Upload("x.jsonl", data)],
        choices=Choices(keep_held_out=False), by=actor,
    )  # fmt: skip
    again = services.suite_import_confirm(row=row, digest=row.digest, by=actor)

    assert (again.digest, again.tasks_digest) == (first.digest, first.tasks_digest)
    assert [TaskSpec.model_validate(each) for each in get_store().iter_jsonl(again.tasks_digest)] == tasks
    assert b"".join(services.suite_export_stream(suite_version=again)) == data


def asked(key, text):
    return line(id=key, messages=[{"role": "user", "content": text}])


def test_it_is_said_how_much_was_replaced(project, actor):
    data = b"\n".join(
        [
            line(),
            asked("b", "Omar Kumar wrote to omar@kumar.example."),
            asked("c", "Dear Karen Lewis, hello."),
        ]
    )

    done = services.suite_import_jsonl(
        project=project, name="Imported", filename="cases.jsonl", data=data, by=actor
    )

    assert (done.replaced, done.changed) == (3, 2)
    assert done.version.note == ("Imported from cases.jsonl; personal details replaced: 3 in 2 of 3 cases")
    kept = services.suite_import_jsonl(
        project=project, name="Kept", filename="c.jsonl", data=data, by=actor, keep_personal_data=True
    )
    assert (kept.replaced, kept.changed) == (0, 0)


def test_labels_in_a_question_are_imported_as_they_are(project, actor):
    said = "Sort this ticket: my parcel is late.\nQueue: account, billing, returns, shipping, technical?"

    version = load(project, actor, asked("a", said))

    assert version.cases.get().task["messages"][0]["content"] == said


def test_the_page_says_how_much_was_replaced(page):
    data = line() + b"\n" + asked("b", "Omar Kumar wrote to omar@kumar.example.")

    answer = page.post(
        reverse("evals:suite_import"), {"name": "New", "file": SimpleUploadedFile("cases.jsonl", data)}
    )

    row = SuiteImport.objects.get()
    assert "2 details replaced in 1 case" in text(page.get(answer.url))
    done = page.post(reverse("evals:suite_import_confirm", args=[row.pk]), {"digest": row.digest})

    assert "New v1 holds 2 cases; 2 personal details were replaced in 1 of them." in text(page.get(done.url))
