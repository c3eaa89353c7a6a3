"""The look keeps its promise: text on any surface has a contrast of at least 4.5 to 1."""

import re
from pathlib import Path

import pytest

_FOLDER = Path(__file__).parents[2] / "static" / "css"
_CSS = (_FOLDER / "tokens.css").read_text()
_RAW = dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6});", _CSS))
_PAIR = re.compile(r"--([\w-]+):\s*light-dark\(var\(--([\w-]+)\), var\(--([\w-]+)\)\);")
_PAIRS = {name: (light, dark) for name, light, dark in _PAIR.findall(_CSS)}
_SURFACES = ("page", "panel", "sunken")
_TEXTS = ("text", "muted", "accent", "pass", "fail", "warn", "info")
_ON_OWN_WASH = ("pass", "fail", "warn", "info", "mask")


def _luminance(hex_colour: str) -> float:
    parts = [int(hex_colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str, side: int) -> float:
    high, low = sorted((_luminance(_RAW[_PAIRS[name][side]]) for name in (one, other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("side", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("surface", _SURFACES)
@pytest.mark.parametrize("text", _TEXTS)
def test_text_is_readable_on_every_surface(text: str, surface: str, side: int) -> None:
    assert _contrast(text, surface, side) >= 4.5


@pytest.mark.parametrize("side", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("tone", _ON_OWN_WASH)
def test_a_badge_is_readable_on_its_own_colour(tone: str, side: int) -> None:
    assert _contrast(tone, f"{tone}-soft", side) >= 4.5


@pytest.mark.parametrize("side", [0, 1], ids=["light", "dark"])
def test_the_primary_button_is_readable(side: int) -> None:
    assert _contrast("on-accent", "accent", side) >= 4.5
    assert _contrast("text", "accent-soft", side) >= 4.5


@pytest.mark.parametrize("side", [0, 1], ids=["light", "dark"])
def test_every_cell_of_a_heat_map_is_readable(side: int) -> None:
    """The cells lie between the two ends, and so does their contrast."""
    assert _contrast("text", "sunken", side) >= 4.5
    assert _contrast("text", "heat", side) >= 4.5


@pytest.mark.parametrize("side", [0, 1], ids=["light", "dark"])
def test_edges_of_controls_stand_out(side: int) -> None:
    assert all(_contrast("control", surface, side) >= 3 for surface in ("page", "panel"))


def test_only_the_tokens_file_names_raw_colours() -> None:
    colour = re.compile(r":[^;{}]*#[0-9a-fA-F]{3,8}\b")

    naming = [path.name for path in _FOLDER.glob("*.css") if colour.search(path.read_text())]

    assert naming == ["tokens.css"]
