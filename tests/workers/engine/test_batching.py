"""The batcher on the committed model: no thread, no HTTP."""

from collections.abc import Callable

import pytest

from packs.starter.tasks import generate
from tests.workers.engine.conftest import WEIGHTS
from workers.engine.adapters import Served, merged
from workers.engine.batching import Batcher, Request
from workers.engine.model import assemble, load_model
from workers.engine.sampling import Params
from workers.engine.text import Text

CONFIG, BASE = load_model(WEIGHTS)
TEXT = Text(WEIGHTS)
SERVED = Served("pocket", assemble(CONFIG, BASE), "")
FAMILIES = ("invoice_fields", "tool_call", "python_functions")


def _batcher(**options: object) -> Batcher:
    return Batcher(CONFIG, decode=TEXT.decode, **({"slots": 24} | options))  # type: ignore[arg-type]


def _prompts(count: int) -> list[list[int]]:
    tasks = [task for family in FAMILIES for task in generate(family, seed=8, count=count)]
    return [
        TEXT.chat([{"role": "user", "content": task.messages[0].content}], task.tools, True) for task in tasks
    ]


PROMPTS = _prompts(4)


def _request(prompt: list[int], *, seed: int = 0, temperature: float = 1.0, **changes: object) -> Request:
    params = Params(max_tokens=24, temperature=temperature, seed=seed)
    return Request(prompt=prompt, params=params, served=SERVED, **changes)  # type: ignore[arg-type]


def _run(batcher: Batcher, requests: list[Request]) -> list[list[int]]:
    for request in requests:
        batcher.add(request)
    while batcher.busy:
        batcher.step()
    return [[drawn.token for drawn in request.drawn] for request in requests]


def _alone(requests: list[Request]) -> list[list[int]]:
    batcher = _batcher(slots=1)
    return [_run(batcher, [request])[0] for request in requests]


def _requests(temperature: float = 1.0) -> list[Request]:
    return [_request(prompt, seed=i, temperature=temperature) for i, prompt in enumerate(PROMPTS)]


def test_a_crowd_gives_each_request_what_it_gets_alone() -> None:
    assert _run(_batcher(), _requests()) == _alone(_requests())


def test_more_requests_than_slots_are_all_served() -> None:
    assert _run(_batcher(slots=3), _requests()) == _run(_batcher(), _requests())


def test_samples_of_one_prompt_share_its_computation_and_differ() -> None:
    same = [_request(PROMPTS[0], seed=seed) for seed in range(8)]
    alone = _alone([_request(PROMPTS[0], seed=seed) for seed in range(8)])

    assert _run(_batcher(), same) == alone
    assert len(set(map(tuple, alone))) > 1


def test_a_request_of_higher_rank_pushes_out_a_lower_one_which_ends_the_same() -> None:
    expected = _run(_batcher(), [_request(prompt, seed=i) for i, prompt in enumerate(PROMPTS[:3])])
    batcher = _batcher(slots=2)
    low = [_request(prompt, seed=i, priority=10) for i, prompt in enumerate(PROMPTS[:2])]
    for request in low:
        batcher.add(request)
    for _ in range(4):
        batcher.step()
    urgent = _request(PROMPTS[2], seed=2, priority=0)

    batcher.add(urgent)
    batcher.step()
    served_at_once = bool(urgent.drawn)
    tokens = _run(batcher, [])

    assert tokens == []
    assert served_at_once
    assert batcher.counters.preemptions == 1
    assert [[drawn.token for drawn in request.drawn] for request in (*low, urgent)] == expected


def test_waiting_requests_are_taken_by_rank_then_by_age() -> None:
    batcher = _batcher(slots=1)
    late, first, second = (_request(PROMPTS[i], priority=p) for i, p in ((0, 5), (1, 0), (2, 0)))
    order: list[Request] = []

    for request in (late, first, second):
        batcher.add(request)
    while batcher.busy:
        order += [delta.request for delta in batcher.step() if delta.finish_reason]

    assert order == [first, second, late]


def test_a_cancelled_request_leaves_its_slot_to_the_next() -> None:
    batcher = _batcher(slots=1)
    gone, next_one = _request(PROMPTS[0]), _request(PROMPTS[1], seed=1)
    batcher.add(gone)
    batcher.add(next_one)
    batcher.step()

    gone.cancelled = True
    _run(batcher, [])

    assert not gone.finish_reason
    assert next_one.finish_reason
    assert batcher.rows == []


def test_a_cancelled_request_that_still_waits_is_forgotten() -> None:
    batcher = _batcher()
    request = _request(PROMPTS[0])
    request.cancelled = True

    assert _run(batcher, [request]) == [[]]


def test_an_answer_ends_where_the_context_ends() -> None:
    prompt = PROMPTS[0]
    batcher = _batcher(max_length=len(prompt) + 3)
    request = _request(prompt)

    (tokens,) = _run(batcher, [request])

    assert len(tokens) == 3
    assert request.finish_reason == "length"


def test_rows_of_different_adapters_do_not_mix(make_adapter: Callable[[int], object]) -> None:
    adapters = [SERVED] + [
        Served(f"a{seed}", merged(CONFIG, BASE, make_adapter(seed)), "", "pocket") for seed in (1, 2)
    ]

    def requests() -> list[Request]:
        made = _requests(temperature=0.0)
        for index, request in enumerate(made):
            request.served = adapters[index % 3]
        return made

    alone = _alone(requests())

    assert _run(_batcher(), requests()) == alone
    assert alone != _run(_batcher(), _requests(temperature=0.0))


@pytest.mark.parametrize("crowd", [1, 4])
def test_speculation_changes_the_speed_and_not_the_answer(crowd: int) -> None:
    standard, fast = _batcher(), _batcher(speculative=True)
    prompts = [PROMPTS[start : start + crowd] for start in range(0, len(PROMPTS), crowd)]

    plain = [_run(standard, [_request(p, temperature=0.0) for p in group]) for group in prompts]
    drafted = [_run(fast, [_request(p, temperature=0.0) for p in group]) for group in prompts]

    assert standard.counters.ties == 0
    assert drafted == plain
    assert fast.counters.accepted_tokens > 0
    assert fast.counters.accepted_tokens <= fast.counters.draft_tokens


def test_sampled_requests_are_never_drafted() -> None:
    fast = _batcher(speculative=True)

    tokens = _run(fast, _requests()[:4])

    assert fast.counters.drafts == 0
    assert tokens == _run(_batcher(), _requests()[:4])
