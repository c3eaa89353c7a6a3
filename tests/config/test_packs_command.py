"""`flywheel packs` as a shell sees it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from artifacts import ArtifactStore
from config import command, packs_command
from domain.contracts import FamilyCheck
from packs.records import last_check, record_check
from workers.sandbox import SandboxUnavailable


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ArtifactStore]:
    """The store of an installation whose data folder is ``tmp_path``."""
    monkeypatch.setenv("FLYWHEEL_DATA", str(tmp_path))
    monkeypatch.delenv("FLYWHEEL_ARTIFACTS", raising=False)
    yield ArtifactStore(f"file://{tmp_path}/artifacts")
    monkeypatch.delenv("FLYWHEEL_ARTIFACTS", raising=False)


def run(*words: str) -> int:
    return command.main(["packs", *words])


def test_list_json_names_every_family_with_its_last_check(
    data: ArtifactStore, capsys: pytest.CaptureFixture[str]
) -> None:
    record_check(
        data,
        FamilyCheck(
            name="tool_call", pack="starter", tasks=3, checked_at="2026-01-01T00:00:00+00:00", gold_pass=1.0,
            noop_pass=0.0, bad_pass=0.0,
        ),
    )  # fmt: skip

    assert run("list", "--json") == 0

    families = {row["name"]: row for row in json.loads(capsys.readouterr().out)["families"]}
    assert len(families) > 100
    assert families["tool_call"]["gold_pass"] == 1.0
    assert families["tool_call"]["checked_at"] == "2026-01-01T00:00:00+00:00"
    assert families["rg_chain_sum"]["checked_at"] is None
    assert families["rg_chain_sum"]["gold_pass"] is None
    assert families["rg_chain_sum"]["verifier_kinds"] == ["scorer"]
    assert families["part_block"]["pack"] == "modelling"


def test_list_says_what_was_never_checked(data: ArtifactStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list") == 0

    out = capsys.readouterr().out
    assert "part_block" in out
    assert "never checked" in out


def test_check_runs_and_records_in_the_installations_store(
    data: ArtifactStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("check", "tool_call", "invoice_fields", "--sample", "2", "--seed", "7") == 0

    out = capsys.readouterr().out
    assert "2 families, 4 tasks" in out
    check = last_check(data, "tool_call")
    assert check is not None
    assert (check.gold_pass, check.noop_pass, check.bad_pass, check.seed) == (1.0, 0.0, 0.0, 7)


@pytest.mark.parametrize(
    "changes",
    [
        {"gold_pass": 0.9},
        {"noop_pass": 0.1},
        {"bad_pass": 0.1},
        {"errors": 1},
        {"gold_pass": None, "tasks": 0},
    ],
)
def test_a_family_that_breaks_a_promise_is_not_sound(changes: dict[str, object]) -> None:
    good = FamilyCheck(name="f", pack="p", tasks=2, gold_pass=1.0, noop_pass=0.0, bad_pass=0.0)

    assert packs_command.sound(good)
    assert not packs_command.sound(good.model_copy(update=changes))


def test_check_ends_with_1_and_says_which_family_is_not_sound(
    data: ArtifactStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(packs_command, "sound", lambda check, canary: False)

    assert run("check", "tool_call", "--sample", "1") == 1

    assert "Not sound: tool_call." in capsys.readouterr().out


def test_an_unknown_family_is_wrong_usage_with_near_names(
    data: ArtifactStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("check", "tool_cal") == 2

    error = capsys.readouterr().err
    assert "tool_cal" in error
    assert "Did you mean tool_call" in error


def test_wrong_arguments_are_wrong_usage(data: ArtifactStore) -> None:
    for words in (("check", "--sample", "0"), ("nothing",), ()):
        with pytest.raises(SystemExit) as ended:
            run(*words)
        assert ended.value.code == 2


def test_new_makes_a_pack_from_the_template(
    data: ArtifactStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "mine"

    assert run("new", "acme_units", "--folder", str(folder)) == 0
    assert (folder / "acme_units" / "tasks.py").is_file()
    assert "flywheel packs check acme_units_sum" in capsys.readouterr().out
    assert run("new", "acme_units", "--folder", str(folder)) == 2
    assert run("new", "No-Good") == 2


def test_a_data_folder_that_cannot_be_written_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("FLYWHEEL_DATA", str(tmp_path / "file"))
    monkeypatch.setenv("FLYWHEEL_ARTIFACTS", f"file://{tmp_path}/file/artifacts")

    assert run("check", "balance_check", "--sample", "1") == packs_command.MACHINE
    said = capsys.readouterr().err

    assert said.startswith("flywheel: Not a directory") or said.startswith("flywheel: File exists")
    assert said.count("\n") == 1


def test_a_sandbox_that_cannot_be_had_is_said_in_one_line(
    data: ArtifactStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> None:
        raise SandboxUnavailable("There is no bwrap.", "Install bubblewrap.")

    monkeypatch.setattr("workers.evidence.worker_collectors", refuse)

    assert run("check", "balance_check") == packs_command.MACHINE
    assert capsys.readouterr().err == "flywheel: There is no bwrap. Install bubblewrap.\n"


def test_impossible_families_stand_apart_as_they_have_no_good_answer(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLYWHEEL_ARTIFACTS", f"file://{tmp_path}/artifacts")

    assert packs_command.main(["list", "--json"]) == packs_command.DONE

    listed = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in listed["canaries"]] == ["part_impossible"]
    assert "part_impossible" not in {row["name"] for row in listed["families"]}
    assert len(listed["families"]) > 100
    record = FamilyCheck(name="part_impossible", pack="modelling", tasks=3, noop_pass=0.0, bad_pass=0.0)
    assert packs_command.sound(record, canary=True)
    assert not packs_command.sound(record)
