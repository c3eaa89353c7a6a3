import pytest

from domain.contracts import SandboxStep, Step
from workers.collect.pictures import PREFIX, picture_of, with_picture

PNG = f"{PREFIX}iVBORw0KGgo="


@pytest.mark.parametrize("name", ["geometry", "scene"])
def test_the_last_step_gets_the_picture(name: str) -> None:
    first, last = with_picture((Step(action="a"), Step(action="b")), {name: {"picture": PNG}})

    assert first == Step(action="a")
    assert last == Step(action="b", sandbox=SandboxStep(command="script", picture=PNG))


def test_what_a_step_did_stays_with_its_picture() -> None:
    step = Step(sandbox=SandboxStep(command="submit", stdout="done"))

    (shown,) = with_picture((step,), {"geometry": {"picture": PNG}})

    assert shown.sandbox == SandboxStep(command="submit", stdout="done", picture=PNG)


def test_without_a_picture_nothing_changes() -> None:
    steps = (Step(action="a"),)

    assert with_picture(steps, {"geometry": {"status": "error"}, "python_calls": {"picture": PNG}}) == steps
    assert with_picture((), {"geometry": {"picture": PNG}}) == ()


@pytest.mark.parametrize("value", ["https://example.com/a.png", "<svg>", PREFIX + "A" * 40_000, None, 3])
def test_what_is_no_small_picture_is_not_shown(value: object) -> None:
    assert picture_of({"picture": value}) == ""
