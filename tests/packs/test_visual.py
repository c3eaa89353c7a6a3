"""The visual pack: pictures that can be read exactly, and answers that are judged right."""

import base64
import io

import pytest
from PIL import Image

from domain.contracts.tasks import TaskSpec
from packs.visual import PACK
from packs.visual.canvas import Canvas
from tests.packs.seeded_checks import assert_answers_are_judged_right, assert_tasks_are_sound

NAMES = [family.name for family in PACK.families]


def picture(task: TaskSpec) -> Image.Image:
    (text, image) = task.messages[-1].content  # type: ignore[misc]
    assert text["type"] == "text"
    head, _, data = image["image_url"]["url"].partition(",")
    assert head == "data:image/png;base64"
    return Image.open(io.BytesIO(base64.b64decode(data)))


@pytest.mark.parametrize("family", NAMES)
def test_tasks_are_distinct_reproducible_and_sound(family: str) -> None:
    assert_tasks_are_sound(PACK, family, count=8)


@pytest.mark.parametrize("family", NAMES)
def test_gold_passes_and_nothing_and_every_mistake_fail(family: str) -> None:
    assert_answers_are_judged_right(PACK, family, count=8)


@pytest.mark.parametrize("family", NAMES)
def test_a_picture_is_small_and_not_empty(family: str) -> None:
    for task in PACK.generate(family, seed=4, count=4):
        shown = picture(task)

        assert 400 <= shown.width <= 600
        assert 250 <= shown.height <= 400
        assert len(shown.convert("RGB").getcolors(1 << 20) or ()) > 4
        assert len(str(task.messages[-1].content)) < 30_000


def test_two_different_pictures_under_one_question_are_two_tasks() -> None:
    tasks = PACK.generate("screen_switches", seed=1, count=10)

    assert len({str(task.messages[-1].content[0]) for task in tasks}) == 1
    assert len({str(task.messages) for task in tasks}) == 10


def test_no_task_is_both_reserved_and_not() -> None:
    reserved, free = (PACK.generate("chart_value", seed=5, count=6, reserved=held) for held in (True, False))

    assert not {task.id for task in reserved} & {task.id for task in free}


def test_the_button_that_is_asked_for_lies_where_the_answer_says() -> None:
    for task in PACK.generate("screen_point", seed=9, count=6):
        x, y = task.reference["x"], task.reference["y"]
        shown = picture(task).convert("RGB")

        assert shown.getpixel((x - 38, y)) == (255, 255, 255)  # the button's face, beside its text
        assert 24 < y < shown.height - 16


def test_the_bar_that_is_asked_for_is_as_high_as_the_answer() -> None:
    """Measured in the picture: the grid lines give the scale."""
    for task in PACK.generate("chart_value", seed=3, count=6):
        shown = picture(task).convert("RGB")
        heights = _bar_heights(shown)
        months = str(task.messages[-1].content[0]["text"])
        draft = PACK.bad_answers(task)
        top = int(str(draft["top of the axis"]))
        step = top // 6
        values = [round(height / (246 / (step * 5)) / (step / 2)) * step // 2 for height in heights]

        assert task.reference in values, (months, values)
        assert len(values) == 7


def _bar_heights(shown: Image.Image) -> list[int]:
    """Of each run of columns that hold the bars' blue, how many rows do."""
    heights: list[int] = []
    inside = False
    for x in range(shown.width):
        blue = sum(_blue(shown.getpixel((x, y))) for y in range(shown.height))
        if blue > 5 and not inside:
            heights.append(0)
        inside = blue > 5
        if inside:
            heights[-1] = max(heights[-1], blue)
    return heights


def _blue(pixel: object) -> bool:
    red, _, blue = pixel  # type: ignore[misc]
    return bool(blue > 150 and red < 110)


def test_a_canvas_is_as_large_as_it_was_asked_for() -> None:
    made = Image.open(io.BytesIO(Canvas(40, 30, "#ff0000").png()))

    assert made.size == (40, 30)
    assert made.convert("RGB").getpixel((5, 5)) == (255, 0, 0)
