"""The local endpoints behind the pictures: what they say, and under which name."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from config.showcase_endpoints import JUDGES, LIVE, READER, Endpoints
from config.showcase_texts import gold_answers
from domain.quoting import quoted_part
from packs.registry import pack_of_family


@pytest.fixture
def endpoints() -> Iterator[Endpoints]:
    with Endpoints("http://127.0.0.1:9") as made:
        yield made


def say(endpoints: Endpoints, model: str, messages: list[dict[str, Any]], **more: Any) -> httpx.Response:
    body = {"model": model, "messages": messages, **more}
    return httpx.post(f"{endpoints.url}/v1/chat/completions", json=body)


def tasks(family: str, count: int) -> list[Any]:
    return pack_of_family(family).generate(family, seed=3, count=count, reserved=True)


def rows(family: str, count: int) -> list[dict[str, Any]]:
    return [task.model_dump(mode="json") for task in tasks(family, count)]


def test_the_reader_says_the_known_answer_of_the_picture_that_it_is_shown(endpoints: Endpoints):
    asked = rows("chart_value", 3)
    endpoints.learn(asked)

    said = [
        say(endpoints, READER, row["messages"]).json()["choices"][0]["message"]["content"] for row in asked
    ]

    pack = pack_of_family("chart_value")
    assert said[1:] == [pack.gold_answer(task) for task in tasks("chart_value", 3)[1:]]
    assert said[0] in pack.bad_answers(tasks("chart_value", 1)[0]).values()


def test_the_reader_goes_on_with_its_turns(endpoints: Endpoints):
    asked = rows("order_status", 2)
    endpoints.learn(asked)
    begun = [
        *asked[1]["messages"],
        {"role": "assistant", "content": "…"},
        {"role": "user", "content": "done"},
    ]

    said = say(endpoints, READER, begun).json()["choices"][0]["message"]["content"]

    gold = pack_of_family("order_status").gold_answer(tasks("order_status", 2)[1])
    assert said == gold[1]


def test_the_judge_of_facts_is_right_more_often_than_the_one_of_length(endpoints: Endpoints):
    right = dict.fromkeys(JUDGES, 0)
    for gold in gold_answers():
        question, answer = (quoted_part(gold[name]) for name in ("question", "answer"))
        asked = f"Question:\n{question}\n\nAnswer:\n{answer}\n\nYour verdict:"
        for name in JUDGES:
            said = say(endpoints, name, [{"role": "user", "content": asked}]).json()
            verdict = json.loads(said["choices"][0]["message"]["content"].split("\n")[1])
            right[name] += verdict["pass"] is gold["passes"]

    assert right[JUDGES[0]] > 20
    assert right[JUDGES[1]] < 18


def test_a_stream_holds_the_same_answer(endpoints: Endpoints):
    asked = rows("ticket_routing", 2)
    endpoints.learn(asked)

    streamed = say(endpoints, READER, asked[1]["messages"], stream=True).text

    events = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith("data: {")]
    gold = pack_of_family("ticket_routing").gold_answer(tasks("ticket_routing", 2)[1])
    assert events[0]["choices"][0]["delta"]["content"] == gold
    assert events[-1]["usage"]["prompt_tokens"] > 0


def test_another_model_behind_the_live_name_answers_under_it(endpoints: Endpoints):
    with Endpoints("http://127.0.0.1:9") as behind:
        endpoints.engine, endpoints.behind = behind.url, READER

        answer = say(endpoints, LIVE, [{"role": "user", "content": "Who are you?"}]).json()

    assert answer["model"] == LIVE
    assert answer["choices"][0]["message"]["content"] == "I do not know."
