"""Answers of earlier runs: found when the very same is asked, never otherwise, and not for ever."""

import os
import threading
from pathlib import Path

import pytest

from workers.response_cache import DAY_S, ResponseCache

KEY, OTHER = "a" * 64, "b" * 64
REPLY = {"text": "Grüße \u2028 \U0001f600", "prompt_tokens": 3}


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(tmp_path: Path, clock: Clock) -> ResponseCache:
    return ResponseCache(tmp_path / "cache", max_age_s=30 * DAY_S, max_bytes=4000, clock=clock)


def files(cache: ResponseCache) -> list[Path]:
    return sorted(cache._folder.glob("??/*"))


def test_what_was_kept_is_found(cache: ResponseCache) -> None:
    cache.put(KEY, REPLY)

    assert cache.get(KEY) == REPLY
    assert cache.get(OTHER) is None


def test_an_answer_with_half_a_surrogate_pair_is_kept_like_any_other(cache: ResponseCache) -> None:
    cache.put(KEY, {"text": "a\ud800b"})

    assert cache.get(KEY) == {"text": "a\ud800b"}


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "another's", "no JSON"])
def test_a_damaged_entry_is_a_miss_and_can_be_kept_anew(cache: ResponseCache, damage: str) -> None:
    cache.put(KEY, REPLY)
    [path] = files(cache)
    data = path.read_bytes()
    if damage == "another's":
        cache.put(OTHER, {"text": "of another"})
        data = next(found for found in files(cache) if found != path).read_bytes()
    path.write_bytes(
        {
            "cut": data[:-9],
            "flipped": data.replace(b"3", b"4"),
            "empty": b"",
            "another's": data,
            "no JSON": b"{}",
        }[damage]
    )

    assert cache.get(KEY) is None
    cache.put(KEY, REPLY)
    assert cache.get(KEY) == REPLY


def test_two_workers_at_once_do_no_harm(tmp_path: Path) -> None:
    caches = [ResponseCache(tmp_path / "cache") for _ in range(4)]
    seen: list[object] = []

    def work(cache: ResponseCache) -> None:
        for _ in range(50):
            cache.put(KEY, REPLY)
            seen.append(cache.get(KEY))

    threads = [threading.Thread(target=work, args=(cache,)) for cache in caches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert seen == [REPLY] * 200
    assert [path.name for path in files(caches[0])] == [f"{KEY}.json"]


def test_an_old_entry_is_a_miss_and_is_swept_away(cache: ResponseCache, clock: Clock) -> None:
    cache.put(KEY, REPLY)
    clock.now += 31 * DAY_S
    cache.put(OTHER, REPLY)

    assert cache.get(KEY) is None
    assert cache.sweep() == 1
    assert cache.get(OTHER) == REPLY


def test_the_oldest_go_when_the_cache_outgrows_its_size(cache: ResponseCache, clock: Clock) -> None:
    keys = [f"{n:064x}" for n in range(10)]
    for key in keys:
        clock.now += 1
        cache.put(key, {"text": "x" * 900})

    removed = cache.sweep()

    assert removed == 7
    assert [cache.get(key) is not None for key in keys] == [False] * 7 + [True] * 3


def test_sweeping_is_done_once_in_ten_minutes(cache: ResponseCache, clock: Clock) -> None:
    cache.put(KEY, REPLY)
    cache.sweep()
    clock.now += 31 * DAY_S
    os.utime(cache._folder / ".swept", (clock.now, clock.now))

    assert cache.sweep() == 0
    clock.now += 601
    assert cache.sweep() == 1


def test_answers_are_nobody_elses(cache: ResponseCache) -> None:
    cache.put(KEY, REPLY)

    [path] = files(cache)
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0


def test_a_cache_that_cannot_be_written_costs_the_entry_and_not_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = ResponseCache(tmp_path / "file")

    cache.put(KEY, REPLY)

    assert cache.get(KEY) is None
    assert cache.sweep() == 0


def test_where_it_lies_and_how_long_it_keeps_is_set_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLYWHEEL_DATA", str(tmp_path))
    monkeypatch.setenv("FLYWHEEL_RESPONSE_CACHE_DAYS", "0.5")

    cache = ResponseCache.from_environment()
    cache.put(KEY, REPLY)

    assert (tmp_path / "response-cache" / "aa" / f"{KEY}.json").is_file()
    assert cache._max_age_s == DAY_S / 2
