from importlib.metadata import EntryPoint

import pytest

from packs import registry
from packs.starter import PACK


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an installed distribution declares, without installing one."""
    points = [EntryPoint("starter", "packs.starter:PACK", registry.GROUP)]

    def entry_points(*, group: str, name: str = "") -> list[EntryPoint]:
        return [point for point in points if group == registry.GROUP and name in ("", point.name)]

    monkeypatch.setattr(registry, "entry_points", entry_points)


def test_installed_packs_are_found_by_name() -> None:
    assert registry.packs() == {"starter": PACK}
    assert registry.pack_named("starter") is PACK


def test_a_family_leads_to_its_pack() -> None:
    assert registry.pack_of_family("tool_call") is PACK


def test_what_is_not_installed_is_named_in_the_error() -> None:
    with pytest.raises(registry.UnknownPack, match="chess"):
        registry.pack_named("chess")
    with pytest.raises(registry.UnknownPack, match="sudoku"):
        registry.pack_of_family("sudoku")


class _Point:
    """An installed entry point: its module is there, or fails as ``load`` says."""

    def __init__(self, name: str, load: object) -> None:
        self.name, self.value, self._load = name, f"{name}:PACK", load

    def load(self) -> object:
        if isinstance(self._load, Exception):
            raise self._load
        return self._load


def test_a_broken_pack_is_named_and_keeps_no_other_away(monkeypatch: pytest.MonkeyPatch) -> None:
    good = PACK
    points = [
        _Point("payroll", SyntaxError("invalid syntax")),
        _Point("gone", ModuleNotFoundError("No module named 'gone'")),
        _Point("odd", object()),
        _Point("starter", good),
    ]
    monkeypatch.setattr(
        registry,
        "entry_points",
        lambda *, group, name="": [point for point in points if name in ("", point.name)],
    )

    assert registry.packs() == {"starter": good}
    assert registry.broken_packs() == {
        "gone": "ModuleNotFoundError: No module named 'gone'",
        "odd": "odd:PACK is no Pack",
        "payroll": "SyntaxError: invalid syntax",
    }
    with pytest.raises(registry.UnknownPack, match="cannot be loaded: SyntaxError"):
        registry.pack_named("payroll")
