"""Extract, check, locate, extract again."""

from typing import Any

import pytest

from tests.workers.environments.conftest import call, task_in
from workers.environments import Answer, Environment, TaskRefused, make_environment
from workers.scripted import play_solution

PAGES = ["Invoice 7\nNet amount: 1,000.00 EUR\nVAT 19 %: 190.00 EUR", "Total due: 1,190.00 EUR"]
TABLES = [{"title": "Items", "header": ["Item", "Price"], "rows": [["Lamp", "600.00"], ["Desk", "400.00"]]}]
RELATIONS = ["net + vat == total"]


async def test_check_names_the_relation_that_breaks_and_where_its_figures_stand() -> None:
    reply = await _said(call("check", fields={"net": 1000, "vat": 109, "total": "1,190.00"}))

    assert reply.splitlines() == [
        "0 of 1 relations hold.",
        "Relation 'net + vat == total' (net + vat == total) does not hold: 1109 against 1190.",
        "  net = 1000: page 1, line 2",
        "  total = 1,190.00: page 2, line 1",
        "  vat = 109: this figure is nowhere in the document",
    ]


async def test_check_says_so_when_all_relations_hold() -> None:
    assert await _said(call("check", fields={"net": 1000, "vat": 190, "total": 1190})) == (
        "1 of 1 relations hold."
    )


async def test_check_names_what_is_missing() -> None:
    reply = await _said(call("check", fields={"net": 1000, "total": 1190}))

    assert "vat is missing or no number" in reply
    assert "  vat: not given" in reply


async def test_search_finds_lines_and_table_rows() -> None:
    assert await _said(call("search", text="vat 19")) == "page 1, line 3: VAT 19 %: 190.00 EUR"
    assert await _said(call("search", text="lamp")) == "table 1: Lamp | 600.00"
    assert await _said(call("search", text="rebate")) == "'rebate' is nowhere in the document."


async def test_pages_and_tables_are_read_by_number() -> None:
    assert await _said(call("read_page", n=2)) == PAGES[1]
    assert await _said(call("read_table", n=1)) == "Items\nItem | Price\nLamp | 600.00\nDesk | 400.00"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (call("read_page", n=3), "there is no page 3; there are: 1 to 2"),
        (call("read_page", n=0), "there is no page 0"),
        (call("read_table", n=2), "there is no table 2"),
        (call("read_page", n="2"), "is not of type 'integer'"),
        (call("check", fields="net"), "is not of type 'object'"),
    ],
)
async def test_a_mistake_is_said_and_costs_a_turn(said: str, why: str) -> None:
    assert why in await _said(said)


async def test_what_is_submitted_is_the_answer() -> None:
    environment = await _started()

    over = await environment.act(Answer(call("submit", answer={"net": 1000})))

    assert over
    assert environment.answer_text() == '{"net": 1000}'


async def test_a_text_is_submitted_as_it_is() -> None:
    task = task_in("documents", pages=PAGES).model_copy(update={"reference": "1190"})

    assert (await play_solution(task, "1190", collectors={})).state == "passed"


async def test_an_episode_that_never_submits_has_no_answer() -> None:
    task = task_in("documents", pages=PAGES, max_turns=2)

    done = await play_solution(task, (call("read_page", n=1), call("read_page", n=2)), collectors={})

    assert (done.state, done.reward) == ("failed", 0.0)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"pages": []},
        {"pages": [1]},
        {"pages": ["a"], "relations": ["net +"]},
        {"pages": ["a"], "tables": [1]},
    ],
)
async def test_a_task_that_makes_no_document_is_refused(params: dict[str, Any]) -> None:
    with pytest.raises(TaskRefused):
        await make_environment("documents").reset(task_in("documents", **params))


async def _started() -> Environment:
    environment = make_environment("documents")
    await environment.reset(task_in("documents", pages=PAGES, tables=TABLES, relations=RELATIONS))
    environment.observe()
    return environment


async def _said(text: str) -> str:
    environment = await _started()
    assert not await environment.act(Answer(text))
    (message,) = environment.observe()
    return str(message.content)
