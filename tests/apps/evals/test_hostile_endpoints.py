"""What a probe or a long-context suite asks may be anybody's server: it drips, floods, packs and lies."""

import contextlib
import time
import zlib
from datetime import timedelta

import pytest
import zstandard
from django.utils import timezone

from apps.core.errors import Refused
from apps.evals import asking, services
from apps.evals.asking import CannotAsk, Listener
from apps.evals.context_lengths import sentences_for
from apps.evals.models import Probe
from apps.evals.patience import wait_asked
from apps.evals.services import longcontext, probe_rounds
from tests.endpoints import Handler, Served


def asked_of(handler: type[Handler]) -> str:
    """What comes of one question to ``handler``."""
    with Served(handler) as server, Listener.at(server.url, "m") as model:
        try:
            return model.ask("hello").text
        except CannotAsk as problem:
            return str(problem)


def test_an_answer_that_drips_for_ever_ends_with_its_time(monkeypatch):
    monkeypatch.setattr(asking, "WHOLE_S", 0.2)

    class Drips(Handler):
        def do_POST(self):
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(200):
                    self.wfile.write(b" ")
                    time.sleep(0.02)

    assert asked_of(Drips) == "It did not answer in time."


def test_an_answer_without_end_is_cut_off():
    class Floods(Handler):
        def do_POST(self):
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(1_000):
                    self.wfile.write(bytes(65_536))

    assert "far longer" in asked_of(Floods)


@pytest.mark.parametrize(
    ("name", "pack"),
    [("zstd", zstandard.compress), ("deflate", zlib.compress)],
)
def test_a_packed_answer_is_never_unpacked(name, pack):
    class Packs(Handler):
        def do_POST(self):
            assert self.headers["Accept-Encoding"] == "identity"
            self.answer(200, pack(bytes(50 * 2**20)), Content_Encoding=name)

    assert asked_of(Packs) == "It did not answer with JSON."


@pytest.mark.parametrize(
    "said",
    [
        b"[" * 100_000,
        b"<html>",
        b'"text"',
        b'{"choices": 5}',
        b'{"choices": [{"message": {"content": "a"}}]}',
    ],
)
def test_answers_of_another_shape_are_no_crash(said):
    class Says(Handler):
        def do_POST(self):
            self.answer(200, said)

    assert asked_of(Says) in (
        "a", "It did not answer with JSON.", "It did not answer with a JSON object.",
        "It answers, but not like an OpenAI-compatible endpoint.",
    )  # fmt: skip


def test_log_probabilities_and_counts_that_cannot_be_are_not_taken():
    class Lies(Handler):
        def do_POST(self):
            told = {"top_logprobs": [{"token": "a", "logprob": int("1" + 400 * "0")}]}
            choice = {"message": {"content": "a"}, "logprobs": {"content": [told]}}
            self.answer(200, {"choices": [choice], "usage": {"prompt_tokens": 10**30}, "count": -5})

    with Served(Lies) as server, Listener.at(server.url, "m") as model:
        assert model.ask("hello").prompt_tokens is None
        with pytest.raises(CannotAsk):
            model.first_token("hello", top=5)
        with pytest.raises(CannotAsk):
            model.tokens("hello")


def test_a_retry_after_of_a_year_that_no_calendar_has_says_nothing():
    assert wait_asked(429, "Mon, 01 Jan 99999999999999999999 00:00:00 GMT", 0) == 1.0


@pytest.mark.parametrize("count", [lambda text: 1, lambda text: 1000, lambda text: 10 + len(text) // 10_000])
def test_counts_that_do_not_grow_with_the_text_end_the_counting(count):
    longest = 0

    def make(sentences):
        nonlocal longest
        longest = max(longest, sentences)
        return "word " * sentences

    with pytest.raises(CannotAsk, match="tokens"):
        sentences_for(1_000, make, count)
    assert longest <= 1_000


@pytest.mark.django_db
def test_making_a_long_context_suite_ends_with_its_time(store, project, endpoint, actor, monkeypatch):
    monkeypatch.setattr(longcontext, "COUNT_WITHIN_S", 0.0)

    with pytest.raises(Refused, match="takes too long"):
        services.context_suite_create(project=project, name="Long", deployment=endpoint, by=actor)


@pytest.mark.django_db
def test_a_round_that_outlived_its_claim_leaves_the_next_one_s_alone(
    store, project, endpoint, actor, monkeypatch
):
    probe = services.probe_create(project=project, deployment=endpoint, by=actor)
    later = timezone.now() + timedelta(seconds=500)

    def slow(probe, why):
        Probe.objects.filter(pk=probe.pk).update(busy_until=later)  # another round's
        raise RuntimeError("killed")

    monkeypatch.setattr(probe_rounds, "_ask", slow)
    with pytest.raises(RuntimeError):
        services.probe_round(probe=probe)

    probe.refresh_from_db()
    assert probe.busy_until == later
