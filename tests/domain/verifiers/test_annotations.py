"""Annotations that were asked for, against others that please a linter just as well."""

import pytest

from domain.verifiers.annotations import other_types

WANTED = {"xs": "list[int]", "limit": "int | None", "return": "dict[str, int]"}


@pytest.mark.parametrize(
    "head",
    [
        "def f(xs: list[int], limit: int | None) -> dict[str, int]",
        "def f(xs: 'list[int]', *, limit: Optional[int] = None) -> Dict[str,int]",
        "async def f(xs: typing.List[int], limit: int|None) -> 'dict[str, int]'",
    ],
)
def test_the_types_asked_for_are_known_in_other_spellings(head: str) -> None:
    assert other_types(f"{head}:\n    return {{}}\n", "f", WANTED) == ""


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "def f(xs: object, limit: int | None) -> dict[str, int]: ...",
            "argument xs of f is annotated object",
        ),
        (
            "def f(xs: list[int], limit) -> dict[str, int]: ...",
            "argument limit of f is annotated with nothing",
        ),
        ("def f(xs: list[int], limit: int | None) -> object: ...", "result of f is annotated object"),
        ("T = object\ndef f(xs: T, limit: T) -> T: ...", "is annotated T"),
        ("def g(xs: list[int]) -> int: ...", "no function f"),
        (
            "def f(xs: list[int], limit: int | None) -> dict[str, int]: ...\n"
            "def f(xs: object, limit: object): ...",
            "annotated object",
        ),
        (
            '"""def f(xs: list[int], limit: int | None) -> dict[str, int]"""\ndef f(*a: object): ...',
            "with nothing",
        ),
    ],
)
def test_other_types_are_named(source: str, said: str) -> None:
    assert said in other_types(source, "f", WANTED)
