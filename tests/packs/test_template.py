"""A pack made from the template is found, generates, and is sound as it stands."""

import asyncio
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from packs import registry
from packs.template.copying import PLACEHOLDER, FolderTaken, UnfitName, copy_template
from workers.pack_check import check_families

NAME = "acme_units"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The copied folder, installed as pip would leave it: on the path, with its entry points."""
    folder = tmp_path / "pack"
    copy_template(NAME, folder)
    record = folder / f"flywheel_pack_{NAME}-0.1.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: flywheel-pack-{NAME}\nVersion: 0.1.0\n")
    (record / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{NAME} = {NAME}:PACK\n")
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in [name for name in sys.modules if name.split(".")[0] == NAME]:
        del sys.modules[name]


def test_the_copy_is_a_pack_that_is_found_and_sound(made: Path) -> None:
    pack = registry.pack_named(NAME)

    checks = asyncio.run(
        check_families([(pack, family) for family in pack.families], sample=5, seed=1, collectors={})
    )

    assert [check.name for check in checks] == [f"{NAME}_sum"]
    for check in checks:
        assert (check.gold_pass, check.noop_pass, check.bad_pass, check.errors) == (1.0, 0.0, 0.0, 0)
    assert registry.pack_of_family(f"{NAME}_sum") is pack
    assert Path(pack.folder, "README.md").is_file()


def test_the_copys_own_tests_pass(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(made / "tests"))
    tests = import_module(f"test_{NAME}")
    family = tests.PACK.families[0].name

    tests.test_good_answers_pass_and_bad_ones_fail(family)
    tests.test_the_same_seed_gives_the_same_tasks()

    sys.modules.pop(f"test_{NAME}")


def test_nothing_of_the_templates_name_is_left(made: Path) -> None:
    files = [path for path in made.rglob("*") if path.is_file()]

    assert len(files) >= 7
    assert not [path for path in files if PLACEHOLDER in path.name or PLACEHOLDER in path.read_text()]


def test_a_folder_in_use_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")

    with pytest.raises(FolderTaken):
        copy_template(NAME, tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("name", ["Acme", "acme-units", "1st", "class", "", "../up", "packs", PLACEHOLDER])
def test_names_that_cannot_be_imported_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnfitName):
        copy_template(name, tmp_path / "new")


@pytest.mark.parametrize("name", ["json", "numpy", "starter", "domain"])
def test_a_name_under_which_something_is_found_already_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnfitName, match="is taken"):
        copy_template(name, tmp_path / "pack")

    assert list(tmp_path.iterdir()) == []
