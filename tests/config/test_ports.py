"""Ports of an installation."""

import argparse
import socket
from collections.abc import Iterator

import pytest

from config import ports


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_port_that_someone_listens_on_is_not_free(taken: int):
    assert ports.port_is_free(taken) is False


def test_a_port_is_free_again_after_its_listener_left():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        number = listener.getsockname()[1]

    assert ports.port_is_free(number) is True


def test_a_found_port_has_room_for_its_engines(monkeypatch: pytest.MonkeyPatch):
    busy = {8100, 8131, 8152}  # a port, and engines of the two after it
    monkeypatch.setattr(ports, "port_is_free", lambda number: number not in busy)
    monkeypatch.setattr(ports.random, "randrange", lambda count: 0)

    assert ports.free_ports() == 8160


def test_every_port_is_looked_at_wherever_the_search_begins(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ports, "port_is_free", lambda number: number < 8120)
    monkeypatch.setattr(ports.random, "randrange", lambda count: count - 1)

    assert ports.free_ports() == 8100


def test_two_searches_at_the_same_time_seldom_find_the_same_port(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ports, "port_is_free", lambda number: True)

    assert len({ports.free_ports() for _ in range(40)}) > 10


def test_no_free_port_is_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ports, "port_is_free", lambda number: False)

    assert ports.free_ports() is None


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("8000", 8000), ("65523", 65523)])
def test_a_port_argument_is_a_number_with_room_for_the_engines(text: str, number: int):
    assert ports.port_argument(text) == number


@pytest.mark.parametrize("text", ["-1", "65524", "70000", "eight", "", "²"])
def test_an_impossible_port_is_refused_in_words(text: str):
    with pytest.raises(argparse.ArgumentTypeError, match="choose a number between 1 and 65523"):
        ports.port_argument(text)


@pytest.mark.parametrize("port", [8000, 65500, 65523])
def test_the_port_that_is_proposed_is_a_possible_one(port: int):
    assert ports.port_argument(str(ports.port_instead(port))) != port
