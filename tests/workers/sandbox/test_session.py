"""The host against an agent that lies: nothing it says is believed beyond what was asked of it."""

import asyncio
import json
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.workers.sandbox.programs import SMALL
from workers.sandbox import SandboxSpec
from workers.sandbox.agent.frames import BODY_LIMIT, HEADER_LIMIT, LENGTHS, pack
from workers.sandbox.protocol import MIB, SandboxGone, UnsafePath
from workers.sandbox.session import AgentSandbox
from workers.sandbox.wire import Lost, Wire

Answer = Callable[[dict[str, Any]], list[bytes]]


class FakeChannel:
    """A ``Channel`` whose agent is ``answer``: the frames to send for each request's header."""

    bounds_memory = False
    surely_lives = False
    ooms = 0

    def __init__(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.killed = 0
        self._answer = answer
        self._agent: asyncio.Task[None] | None = None

    async def serve(self, ends: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=ends)
        try:
            while True:
                header, body = LENGTHS.unpack(await reader.readexactly(LENGTHS.size))
                asked = json.loads(await reader.readexactly(header))
                await reader.readexactly(body)
                for frame in self._answer(asked):
                    if frame == b"hang up":
                        return
                    writer.write(frame)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    def mark(self) -> None:
        return

    def oom_kills(self) -> int:
        return self.ooms

    def peak_bytes(self) -> int | None:
        return None

    async def kill(self) -> None:
        self.killed += 1
        self.writer.close()


def against(
    answer: Answer, action: Callable[[AgentSandbox], Awaitable[object]], *, ooms: int = 0
) -> tuple[object, FakeChannel]:
    """What ``action`` gives, or raises, and the channel afterwards."""

    async def call() -> tuple[object, FakeChannel]:
        ours, theirs = socket.socketpair()
        channel = FakeChannel(answer, *await asyncio.open_connection(sock=ours))
        channel.ooms = ooms
        agent = asyncio.create_task(channel.serve(theirs))
        sandbox = AgentSandbox(channel, SandboxSpec(limits=SMALL), environment={})
        try:
            return await action(sandbox), channel
        except (SandboxGone, ValueError, OSError) as error:
            return error, channel
        finally:
            agent.cancel()
            await asyncio.wait([agent])

    return asyncio.run(call())


def done(asked: dict[str, Any], **fields: Any) -> bytes:
    usual = {"exit": 0, "signal": None, "user": 0.1, "system": 0.0, "largest": 1000, "over": False}
    return pack({"id": asked.get("id"), "kind": "done", **usual, **fields})


def starting(asked: dict[str, Any]) -> bytes:
    return pack({"id": asked["id"], "kind": "starting"})


NONSENSE = {
    "a huge header": LENGTHS.pack(HEADER_LIMIT + 1, 0),
    "a huge body": LENGTHS.pack(10, BODY_LIMIT + 1),
    "an empty header": LENGTHS.pack(0, 0),
    "no JSON": LENGTHS.pack(4, 0) + b"{{{{",
    "no UTF-8": LENGTHS.pack(4, 0) + b"\xff\xfe\xff\xfe",
    "a list": LENGTHS.pack(2, 0) + b"[]",
    "deep nesting": LENGTHS.pack(40_000, 0) + b"[" * 40_000,
    "another's id": pack({"id": 999, "kind": "done"}),
    "an unknown kind": pack({"id": 1, "kind": "gift"}, b"x"),
    "the end": b"hang up",
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_loses_the_sandbox_and_nothing_more(name: str) -> None:
    error, channel = against(lambda asked: [NONSENSE[name]], lambda sandbox: sandbox.get("a"))

    assert isinstance(error, SandboxGone)
    assert not error.after_code
    assert channel.killed


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_after_a_program_started_is_that_programs_failure(name: str) -> None:
    result, channel = against(
        lambda asked: [starting(asked), NONSENSE[name]], lambda sandbox: sandbox.exec(["program"])
    )

    assert (result.status, result.exit_code) == ("signal", None)
    assert "the sandbox ended with the program" in result.detail
    assert channel.killed


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_before_a_program_started_is_nobodys_failure(name: str) -> None:
    error, _ = against(lambda asked: [NONSENSE[name]], lambda sandbox: sandbox.exec(["program"]))

    assert isinstance(error, SandboxGone)
    assert not error.after_code


@pytest.mark.parametrize(
    "fields",
    [
        {"exit": "0"},
        {"exit": 256},
        {"exit": -1},
        {"exit": True},
        {"signal": 65},
        {"user": -1.0},
        {"user": "fast"},
        {"user": 1e300},
        {"system": None},
        {"largest": -5},
    ],
    ids=str,
)
def test_a_result_with_impossible_numbers_is_no_result(fields: dict[str, Any]) -> None:
    result, _ = against(
        lambda asked: [starting(asked), done(asked, **fields)], lambda sandbox: sandbox.exec(["program"])
    )

    assert result.status == "signal"
    assert result.exit_code is None


def test_no_more_is_kept_than_was_asked_for() -> None:
    chunk = b"x" * BODY_LIMIT
    flood = lambda asked: [pack({"id": asked["id"], "kind": "data"}, chunk)] * 8  # noqa: E731

    error, channel = against(flood, lambda sandbox: sandbox.get("a", max_bytes=BODY_LIMIT))

    assert isinstance(error, SandboxGone)
    assert channel.killed


def test_an_agent_that_does_not_stop_a_flood_is_ended() -> None:
    def flood(asked: dict[str, Any]) -> list[bytes]:
        if asked.get("op") != "exec":
            return []
        return [starting(asked)] + [pack({"id": asked["id"], "kind": "out"}, b"x" * BODY_LIMIT)] * 4

    result, channel = against(flood, lambda sandbox: sandbox.exec(["program"], timeout_s=3.0))

    assert result.status == "output_limit"
    assert result.stdout.total <= SMALL.output_bytes + BODY_LIMIT
    assert channel.killed


def test_an_agent_that_does_not_obey_is_ended_and_the_time_is_the_hosts() -> None:
    result, channel = against(
        lambda asked: [starting(asked)] if asked["op"] == "exec" else [],
        lambda sandbox: sandbox.exec(["program"], timeout_s=0.2),
    )

    assert result.status == "timeout"
    assert result.wall_s >= 0.2
    assert channel.killed


def test_memory_that_ran_out_is_the_hosts_to_say() -> None:
    result, _ = against(
        lambda asked: [starting(asked), b"hang up"], lambda sandbox: sandbox.exec(["program"]), ooms=1
    )

    assert result.status == "oom"


_FINE = {"path": "fine", "kind": "folder", "mode": 0o755}


def listing(text: str) -> Callable[[dict[str, Any]], list[bytes]]:
    """An agent that lists ``text``, in frames as large as they may be."""
    data = text.encode()
    parts = [data[start : start + BODY_LIMIT] for start in range(0, len(data), BODY_LIMIT)]

    def answer(asked: dict[str, Any]) -> list[bytes]:
        return [*(pack({"id": asked["id"], "kind": "data"}, part) for part in parts), done(asked)]

    return answer


@pytest.mark.parametrize(
    "row",
    [
        {"path": "../out", "kind": "folder", "mode": 0o755},
        {"path": "/etc", "kind": "folder", "mode": 0o755},
        {"path": "a//b", "kind": "folder", "mode": 0o755},
        {"path": "a", "kind": "device", "mode": 0o644},
        {"path": "a", "kind": "folder", "mode": 0o4755},
        {"path": "a", "kind": "file", "mode": 0o644, "bytes": -1, "digest": "0" * 64},
        {"path": "a", "kind": "file", "mode": 0o644, "bytes": 1, "digest": "no digest"},
        {"path": 7, "kind": "folder", "mode": 0o755},
        ["a"],
    ],
    ids=str,
)
def test_entries_that_cannot_be_are_not_listed(row: Any) -> None:
    error, _ = against(listing(json.dumps([_FINE, row])), lambda sandbox: sandbox.list())

    assert isinstance(error, SandboxGone)


@pytest.mark.parametrize(
    "text",
    ["{", "7", '"a"', json.dumps(_FINE), "[" * 100_000, f"[{json.dumps(_FINE)}{' ' * MIB}]"],
    ids=["cut", "a number", "a text", "no list", "nested", "a long line"],
)
def test_a_list_that_is_none_is_not_read(text: str) -> None:
    error, _ = against(listing(text), lambda sandbox: sandbox.list())

    assert isinstance(error, SandboxGone)


def test_entries_come_in_lines_of_several() -> None:
    lines = [json.dumps([{**_FINE, "path": path} for path in paths]) for paths in ("ca", "", "b")]

    found, _ = against(listing("\n".join(lines) + "\n"), lambda sandbox: sandbox.list())

    assert [entry.path for entry in found] == ["a", "b", "c"]


@pytest.mark.parametrize("data", [b"", b"5\nab", b"x\nab", b"99999999999999999999999\n"])
def test_contents_that_were_not_asked_for_are_not_taken(data: bytes) -> None:
    def answer(asked: dict[str, Any]) -> list[bytes]:
        return [pack({"id": asked["id"], "kind": "data"}, data), done(asked)]

    error, _ = against(answer, lambda sandbox: sandbox.fetch(["a"]))

    assert isinstance(error, SandboxGone)


@pytest.mark.parametrize(
    ("kind", "expected"), [("unsafe", UnsafePath), ("missing", FileNotFoundError), ("value", ValueError)]
)
def test_errors_of_a_caller_arrive_as_such_and_lose_nothing(kind: str, expected: type[Exception]) -> None:
    def answer(asked: dict[str, Any]) -> list[bytes]:
        return [pack({"id": asked["id"], "kind": "error", "error": kind, "text": "no"})]

    error, channel = against(answer, lambda sandbox: sandbox.get("a"))

    assert type(error) is expected
    assert not channel.killed


def test_a_read_that_was_cancelled_in_the_middle_of_a_frame_goes_on_where_it_was() -> None:
    async def halves() -> str:
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours)
        wire, frame = Wire(reader, writer), pack({"id": 1, "kind": "data"}, b"body")
        with theirs:
            for cut in (3, LENGTHS.size + 2, len(frame) - 2):
                theirs.sendall(frame[:cut])
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.02):
                        await wire.frame()
                theirs.sendall(frame[cut:])
                assert (await wire.frame()).body == b"body"
            theirs.shutdown(socket.SHUT_WR)
            with pytest.raises(Lost):
                await wire.frame()
        writer.close()
        return "whole"

    assert asyncio.run(halves()) == "whole"


def test_words_that_are_no_command_line_are_refused() -> None:
    for argv in ([], ["a\0b"]):
        error, channel = against(lambda asked: [], lambda sandbox, argv=argv: sandbox.exec(argv))
        assert type(error) is ValueError
        assert not channel.killed


def test_a_sandbox_is_asked_whether_it_answers_unless_it_has_just_done_so_and_surely_lives() -> None:
    asked: list[str] = []

    def answer(header: dict[str, Any]) -> list[bytes]:
        asked.append(header["op"])
        return [pack({"id": header["id"], "kind": "done"})]

    async def three_times(sandbox: AgentSandbox) -> list[int]:
        counts = []
        for surely_lives, heard_ago_s in ((False, 0.0), (True, 0.0), (True, 60.0)):
            sandbox._channel.surely_lives = surely_lives  # type: ignore[misc]
            sandbox._heard_at = time.monotonic() - heard_ago_s
            await sandbox.ping()
            counts.append(len(asked))
        return counts

    counts, _ = against(answer, three_times)

    assert counts == [1, 1, 2]


def test_a_closed_sandbox_does_not_answer_however_recent_its_word() -> None:
    async def closed(sandbox: AgentSandbox) -> str:
        sandbox._channel.surely_lives = True  # type: ignore[misc]
        await sandbox.close()
        with pytest.raises(SandboxGone) as gone:
            await sandbox.ping()
        return gone.value.reason

    assert against(lambda header: [], closed)[0] == "the sandbox is closed"
