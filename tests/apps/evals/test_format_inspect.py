"""Logs that Inspect wrote (0.3.285, its mock model), and logs that nobody should have written."""

import io
import json
import zipfile
from pathlib import Path

import pytest

from apps.evals.formats import Unreadable
from apps.evals.formats.inspect_scorers import scorer_part
from domain.contracts import TaskSpec
from tests.apps.evals.reading import format_of, judged, read, reasons

FOLDER = Path(__file__).parent / "fixtures"


def log(name):
    return name, (FOLDER / name).read_bytes()


def test_an_eval_file_gives_its_samples_once_with_tools_and_what_solvers_added():
    found = read(log("inspect_sums.eval"))

    by_id = {task.id: task for task in found.tasks}
    assert set(by_id) == {"s1", "7"}  # two epochs, one case each
    first = by_id["s1"]
    assert [(m.role, m.content) for m in first.messages] == [
        ("system", "You add."),
        ("user", "What is 1 + 1?"),
    ]
    assert first.tools[0]["function"]["name"] == "add"
    assert (first.family, first.tags) == ("sums", {"level": 0})
    assert judged(first, "The sum is 2.") == "passed"
    assert judged(first, "2 and then 3") == "failed"
    assert judged(by_id["7"], "it is four") == "passed"
    assert not found.left_out


def test_choices_are_asked_as_they_were_and_judged_by_letter():
    (task,) = read(log("inspect_capitals.json")).tasks

    assert "A) Paris" in task.messages[0].content
    assert judged(task, "ANSWER: A") == "passed"
    assert judged(task, "ANSWER: B") == "failed"


def test_pictures_come_from_the_attachments_and_nan_scores_do_no_harm():
    (task,) = read(log("inspect_pictures.json")).tasks

    image = task.messages[0].content[1]
    assert image["image_url"]["url"].startswith("data:image/png;base64,")
    judge, pattern = task.verifier.params["parts"]
    assert judge["kind"] == "judge"
    assert pattern["reference"] == {"answer": "red"}


def test_a_scorer_without_an_equivalent_is_named_and_the_others_judge():
    found = read(log("inspect_words.eval"))

    assert "has no equivalent" in reasons(found)["f1"] or "that has an equivalent" in reasons(found)["f1"]
    assert judged(found.tasks[0], "hello") == "failed"  # answer(word) asks for “ANSWER: hello”


@pytest.mark.parametrize(
    ("name", "options", "target", "right", "wrong"),
    [
        ("match", {}, "yes", "I say: Yes!", "yes or no"),
        ("match", {"location": "begin"}, "yes", "Yes, I do", "I do, yes"),
        ("match", {"location": "exact"}, "yes", "Yes.", "oh yes"),
        ("match", {"location": "any"}, "yes", "oh yes indeed", "no"),
        ("match", {"ignore_case": False}, "Yes", "I say Yes", "I say yes"),
        ("match", {"numeric": True}, "1,000", "about 1000.0", "1001"),
        ("match", {"numeric": True}, "5", "5", "25"),
        ("includes", {}, "Yes", "oh yes", "no"),
        ("includes", {"ignore_case": False}, "Yes", "Yes", "yes"),
        ("exact", {}, "Yes", "yes", "yes!?no"),
        ("answer", {"pattern": "line"}, "a b", "so\nANSWER: a b", "ANSWER: a"),
        ("answer", {"pattern": "letter"}, "C", "ANSWER: C", "ANSWER: D"),
        ("choice", {}, ["A", "C"], "ANSWER: A, C", "ANSWER: A"),
        ("pattern", {"pattern": r"total (\d+)"}, "12", "the total 12 is", "the total 13"),
    ],
)
def test_inspects_scorers_mean_what_they_mean_there(name, options, target, right, wrong):
    part = scorer_part(name, options, {"target": target})

    task = TaskSpec(
        id="a", family="f", messages=[{"role": "user", "content": "q"}],
        verifier={"kind": part["kind"], "params": part["params"]}, reference=part.get("reference"),
    )  # fmt: skip
    assert judged(task, right) == "passed"
    assert judged(task, wrong) == "failed"


def zipped(entries, compression=zipfile.ZIP_DEFLATED):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return data.getvalue()


HEADER = json.dumps(
    {"version": 2, "status": "success", "eval": {"task": "t", "scorers": [{"name": "includes"}]}}
)
SAMPLE = {"id": "a", "epoch": 1, "input": "q", "target": "yes"}


def test_deflated_logs_are_read_too():
    data = zipped({"header.json": HEADER, "samples/a_epoch_1.json": json.dumps(SAMPLE)})

    assert format_of(("x.eval", data)) == "inspect"
    assert len(read(("x.eval", data)).tasks) == 1


def test_a_zip_bomb_is_refused_however_small_it_says_it_is(monkeypatch):
    monkeypatch.setattr("apps.evals.formats.inspect_log._ENTRY", 100_000)
    data = zipped({"header.json": HEADER, "samples/a_epoch_1.json": b" " * 10_000_000})
    lying = data.replace((10_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))

    for each in (data, lying):
        with pytest.raises(Unreadable, match="unpacks to more than is read of a log"):
            read(("x.eval", each))


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        ({**SAMPLE, "target": ""}, "none of its scorers has an equivalent"),
        ({**SAMPLE, "sandbox": {"type": "docker"}}, "works in a sandbox"),
        ({**SAMPLE, "input": [{"role": "user", "content": [{"type": "audio"}]}]}, "neither text nor image"),
        (
            {
                **SAMPLE,
                "input": [{"role": "user", "content": [{"type": "image", "image": "/home/me/a.png"}]}],
            },
            "a file that the log does not hold",
        ),
    ],
)
def test_a_sample_that_cannot_be_a_case_is_left_out(sample, reason):
    found = read(("x.json", json.dumps({**json.loads(HEADER), "samples": [sample]})))

    assert not found.tasks
    assert reason in " ".join(each.reason for each in found.left_out)


def test_a_damaged_zip_is_refused():
    data = zipped({"header.json": HEADER, "samples/a_epoch_1.json": json.dumps(SAMPLE)})

    with pytest.raises(Unreadable):
        read(("x.eval", data[: len(data) // 2]))
    with pytest.raises(Unreadable):
        read(("x.eval", data.replace(b"samples", b"sAmples", 1)[:-30]))
