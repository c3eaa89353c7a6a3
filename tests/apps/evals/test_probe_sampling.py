"""What a probe asks: dialects, log-probabilities or border inputs, rate limits, bounds."""

import itertools
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from email.utils import format_datetime
from types import SimpleNamespace

import pytest

from apps.evals.asking import CannotAsk, Listener
from apps.evals.dialect import Dialect
from apps.evals.patience import Patience, wait_asked
from apps.evals.probe_border import border_part, measured, sizes_for
from apps.evals.probe_prompts import DEFAULT_PROMPTS, SHORT_PROMPTS
from apps.evals.probe_sampling import requests_of, take_reference, take_round
from apps.evals.volley import Volley
from domain.drift import read_round
from tests.apps.evals.conftest import FakeModel, first_tokens

PROMPTS = DEFAULT_PROMPTS[:6]


@pytest.fixture
def fake():
    made = FakeModel()
    yield made
    made.stop()


@pytest.fixture
def model(fake):
    with Listener.at(fake.url, "big-1", patience_s=2.0) as made:
        yield made


def volley(**changes):
    return Volley(**{"bound_s": 60.0, **changes})


def taken(model):
    found = take_reference(model, PROMPTS, volley())
    assert found.problem == ""
    return found.reference


def test_an_endpoint_that_takes_everything_is_asked_the_usual_way(model):
    assert taken(model)["dialect"] == {"limit": "max_tokens", "temperature": True, "seed": True, "top": 20}


@pytest.mark.parametrize(
    ("refused", "expected"),
    [
        ({"max_tokens"}, {"limit": "max_completion_tokens"}),
        ({"seed"}, {"seed": False}),
        ({"max_tokens", "temperature", "seed"},
         {"limit": "max_completion_tokens", "temperature": False, "seed": False}),
    ],
)  # fmt: skip
def test_fields_that_an_endpoint_refuses_are_left_out(fake, model, refused, expected):
    fake.refuse = lambda body: 400 if refused & set(body) else None

    reference = taken(model)

    assert expected.items() <= reference["dialect"].items()
    assert reference["logprobs"] is not None


def test_an_endpoint_without_temperature_says_so(fake, model):
    fake.refuse = lambda body: 400 if "temperature" in body else None

    assert "It refuses a temperature" in taken(model)["notes"][0]


def test_fewer_alternatives_are_asked_for_where_twenty_are_refused(fake, model):
    fake.refuse = lambda body: 400 if body.get("top_logprobs", 0) > 5 else None

    assert taken(model)["dialect"]["top"] == 5


@pytest.mark.parametrize("how", ["status", "silence"])
def test_an_endpoint_that_refuses_logprobs_is_watched_by_border_inputs_and_says_so(fake, model, how):
    if how == "status":
        fake.refuse = lambda body: 400 if "logprobs" in body else None
    fake.logprobs = None
    fake.answer = coin_flips(PROMPTS[:5])

    reference = taken(model)

    assert reference["logprobs"] is None
    assert reference["border"]["temperature"] == 0.05
    assert set(reference["border"]["prompts"]) <= set(PROMPTS[:5])
    assert all(sum(counts.values()) == 8 * 80 // 5 for counts in reference["border"]["counts"])
    assert "shows no log-probabilities" in reference["notes"][0]


def test_border_inputs_are_looked_for_at_higher_temperatures_where_low_ones_have_none(fake, model):
    fake.logprobs = None
    flips = coin_flips(PROMPTS[:5])
    hot = threading.local()

    def refuse(body):
        hot.now = body["temperature"] >= 1 and body["max_tokens"] == 1

    fake.refuse = refuse
    fake.answer = lambda prompt: flips(prompt) if hot.now else "sure"

    reference = taken(model)
    assert reference["border"]["temperature"] == 1.0
    assert "only large changes show" in reference["notes"][1]


def test_an_endpoint_that_never_varies_has_answers_only_and_says_so(fake, model):
    fake.logprobs = None

    reference = taken(model)

    assert reference["border"] is None
    assert "only its short answers are compared" in reference["notes"][1]


def test_border_rounds_tell_a_changed_split_from_an_unchanged_one(fake, model, rng):
    fake.logprobs = None
    fake.answer = coin_flips(PROMPTS[:5])
    reference = taken(model)

    calm = read_round(reference, take_round(model, reference, volley()), {}, rng)
    fake.answer = coin_flips(PROMPTS[:5], share=0.97)
    moved = read_round(reference, take_round(model, reference, volley()), {}, rng)

    border = {signal.name: signal for signal in calm.signals}["border"]
    assert (border.state, border.n) == ("unchanged", 80)
    assert {signal.name: signal.state for signal in moved.signals}["border"] == "flagged"


def test_a_round_never_takes_more_than_100_requests(fake, model):
    fake.logprobs = None
    fake.answer = coin_flips([*DEFAULT_PROMPTS, *SHORT_PROMPTS])
    reference = take_reference(model, [f"prompt {n}" for n in range(30)], volley()).reference
    before = model.tally.spent.requests

    take_round(model, reference, volley())

    assert model.tally.spent.requests - before == requests_of(reference) <= 100


def test_prompts_whose_answer_depends_on_the_company_are_no_border_inputs(fake, model):
    nine = [f"prompt {n}" for n in range(9)]
    flips = coin_flips(nine)
    asked = []

    def answer(prompt):
        asked.append(prompt)
        alone = len(asked) > 6 * 9 * 10  # the passes that are asked together come first
        return "alone" if prompt == nine[0] and alone else flips(prompt)

    fake.answer = answer

    part = measured(model, nine, 0.05, sizes_for(10_000, 80, 4), volley())

    assert part["prompts"] == nine[1:]
    assert len(part["null"]) == 8


@pytest.mark.parametrize(
    ("room", "narrowed", "passes"), [(10_000, 30, 8), (1_500, 20, 4), (400, 6, 2), (300, None, None)]
)
def test_a_reference_of_border_inputs_fits_into_what_a_limit_leaves(room, narrowed, passes):
    sizes = sizes_for(room, 80, 4)

    assert (sizes and sizes.narrowed) == narrowed
    assert (sizes and sizes.alone + sizes.together) == passes
    assert sizes is None or sizes.later < room


@pytest.mark.parametrize("room", [300, 0])
def test_an_endpoint_whose_limits_leave_no_room_is_watched_by_its_answers_and_says_so(fake, model, room):
    class Tight(Volley):
        def room(self):
            return room

    fake.logprobs = None
    fake.answer = coin_flips(PROMPTS[:5])

    found = take_reference(model, PROMPTS, Tight(bound_s=60.0))

    assert found.problem == ""
    assert found.reference["border"] is None
    assert "no room for border inputs" in found.reference["notes"][1]


def test_border_inputs_that_would_not_fit_into_a_round_are_not_looked_for(fake, model):
    border = border_part(model, PROMPTS, volley(per_minute=12))

    assert border.part is None
    assert fake.asked == []


def test_room_is_what_a_limit_per_minute_leaves(fake, model):
    one = volley(per_minute=120)
    one.ask([lambda: 1])

    assert 100 <= one.room() <= 120


def test_a_reference_is_not_taken_from_part_of_the_answers(fake, model):
    asked = itertools.count()
    fake.refuse = lambda body: 500 if next(asked) > 40 else None

    found = take_reference(model, PROMPTS, volley())

    assert found.reference is None
    assert "status 500" in found.problem


def test_a_logprob_that_is_not_a_number_measures_nothing(fake, model):
    fake.logprobs = lambda prompt: {"a": float("nan"), "b": -1.0}

    assert taken(model)["logprobs"] is None


def test_a_rate_limit_is_waited_for(fake, model):
    asked = itertools.count()
    fake.headers = {"Retry-After": "0.1"}
    fake.refuse = lambda body: 429 if next(asked) % 3 == 0 else None

    assert model.ask("x").text == "echo x"
    assert model.tally.spent.requests == 2


def test_a_rate_limit_longer_than_the_bound_is_not_waited_for(fake, model):
    fake.headers = {"Retry-After": "3600"}
    fake.status = 429

    started = time.monotonic()
    with pytest.raises(CannotAsk, match="asks to wait longer"):
        model.ask("x")

    assert time.monotonic() - started < 3600


def test_waits_of_several_threads_at_once_count_once(monkeypatch):
    clock = SimpleNamespace(now=0.0, slept=[])
    frozen = SimpleNamespace(monotonic=lambda: clock.now, sleep=clock.slept.append)
    monkeypatch.setattr("apps.evals.patience.time", frozen)
    patience = Patience(0.5)
    threads = [threading.Thread(target=patience.wait, args=(0.3,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clock.slept == [0.3] * 4

    clock.now = 0.3

    assert patience.wait(0.1)
    assert not patience.wait(0.3)


@pytest.mark.parametrize(
    ("status", "header", "expected"),
    [
        (200, None, None),
        (500, "5", None),
        (503, None, None),
        (503, "5", 5.0),
        (429, "2.5", 2.5),
        (429, None, 4.0),
        (429, "soon", 4.0),
    ],
)
def test_how_long_a_rate_limit_is(status, header, expected):
    assert wait_asked(status, header, 2) == expected


def test_a_date_to_come_back_is_understood():
    then = int(time.time()) + 300
    date = format_datetime(datetime.fromtimestamp(then, UTC), usegmt=True)
    most = then - time.time()

    found = wait_asked(429, date, 0)

    assert then - time.time() - 0.01 <= found <= most + 0.01


def test_a_round_ends_when_its_time_is_up():
    asked = []
    one = volley(bound_s=2.0, parallel=1)

    answers = one.ask([lambda: asked.append(1) or time.sleep(0.5) or 1] * 50)

    assert len(asked) < 10
    assert answers[0] == 1
    assert answers[-1] is None
    assert "time was up" in one.problem


def test_a_target_that_dies_halfway_is_given_up():
    asked = itertools.count()

    def question():
        if next(asked) > 10:
            raise CannotAsk("It could not be reached.")
        return 1

    one = volley()
    one.ask([question] * 200)

    assert next(asked) < 30
    assert one.problem == "It could not be reached."


def test_requests_are_paced_where_the_endpoint_has_a_limit():
    started = time.monotonic()

    volley(per_minute=600).ask([lambda: 1] * 6)

    assert time.monotonic() - started >= 0.5


def test_a_dialect_of_an_old_reference_is_the_usual_one():
    assert Dialect.from_json({}) == Dialect()


def test_alternatives_that_read_the_same_are_one(fake, model):
    fake.logprobs = lambda prompt: {**first_tokens(prompt), "": -3.0}

    assert model.first_token("x", top=20).sample[""] == pytest.approx(-3.0)


@pytest.fixture
def rng():
    import numpy as np

    return np.random.default_rng(1)


def coin_flips(prompts, share=0.5):
    """Answers those prompts with one of two words, ``share`` of them with the first, others with one word.
    Counted by prompt, so that it is the same in whatever order threads ask."""
    asked, lock = Counter(), threading.Lock()

    def answer(prompt):
        if prompt not in prompts:
            return "sure"
        with lock:
            asked[prompt] += 1
            n = asked[prompt]
        return "heads" if int(n * share) > int((n - 1) * share) else "tails"

    return answer
