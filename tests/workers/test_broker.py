"""The embedded broker: whole messages only, each taken once, nothing kept."""

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from kombu import Connection, Consumer, Queue
from kombu.exceptions import ChannelError

from tests.waiting import GUARD_S, until

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "broker"


@pytest.fixture
def connection(folder: Path) -> Iterator[Connection]:
    with connect(folder) as opened:
        yield opened


def connect(folder: Path) -> Connection:
    options = {"data_folder": str(folder), "polling_interval": 0.01}
    return Connection("filesystem://", transport="workers.broker:Transport", transport_options=options)


def send(connection: Connection, *bodies: Any, queue: str = "eval") -> None:
    with connection.SimpleQueue(queue) as simple:
        for body in bodies:
            simple.put(body)


def take(connection: Connection, queue: str = "eval") -> Any:
    with connection.SimpleQueue(queue) as simple:
        message = simple.get(timeout=GUARD_S)
        message.ack()
        return message.payload


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_messages_come_in_the_order_they_were_sent(connection: Connection) -> None:
    send(connection, *range(20))

    assert [take(connection) for _ in range(20)] == list(range(20))


def test_queues_are_apart(connection: Connection) -> None:
    send(connection, "for training", queue="train")
    send(connection, "for evaluation", queue="eval")

    assert take(connection, "eval") == "for evaluation"
    assert take(connection, "train") == "for training"


def test_a_taken_message_is_no_longer_on_disk(connection: Connection, folder: Path) -> None:
    send(connection, {"prompt": "the customer's words"})
    assert len(files(folder)) == 1

    take(connection)

    assert files(folder) == []


def test_only_the_owner_can_read_waiting_messages(connection: Connection, folder: Path) -> None:
    send(connection, "private")

    assert [path.stat().st_mode & 0o777 for path in files(folder)] == [0o600]
    assert (folder / "eval").stat().st_mode & 0o777 == 0o700


def test_a_half_written_message_is_not_seen(connection: Connection, folder: Path) -> None:
    send(connection, "whole")
    whole = files(folder)[0]
    (whole.parent / f".{whole.name}").write_bytes(whole.read_bytes()[:20])

    assert take(connection) == "whole"
    with connection.SimpleQueue("eval") as simple, pytest.raises(Empty):
        simple.get(block=False)


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"body": "x"}',
        b'{"body": 1, "headers": {}, "properties": {}}',
        b'{"body": "x", "headers": {}, "properties": {"delivery_tag": "t", "delivery_info": {}, '
        b'"body_encoding": "rot13"}}',
    ],
)
def test_garbage_is_moved_aside_and_the_next_message_is_taken(
    connection: Connection, folder: Path, garbage: bytes
) -> None:
    send(connection, "sound")
    (folder / "eval" / "00000000000000000000-1-1.msg").write_bytes(garbage)

    assert take(connection) == "sound"
    assert [path.read_bytes() for path in files(folder)] == [garbage]
    assert files(folder)[0].parent.name == "rejected"


def test_a_folder_among_the_messages_stops_nobody(connection: Connection, folder: Path) -> None:
    send(connection, "sound")
    (folder / "eval" / "00000000000000000000-1-1.msg").mkdir()

    assert take(connection) == "sound"


@pytest.mark.parametrize("queue", ["../outside", "/etc", ".hidden", "a/b"])
def test_a_queue_cannot_name_a_path(connection: Connection, queue: str) -> None:
    with pytest.raises(ChannelError):
        connection.channel()._put(queue, {})


def test_two_takers_never_share_a_message(folder: Path) -> None:
    with connect(folder) as sender:
        send(sender, *range(200))
    taken: list[int] = []

    def drain() -> None:
        with connect(folder) as mine, mine.SimpleQueue("eval") as simple:
            while True:
                try:
                    message = simple.get(block=False)
                except Empty:
                    return
                message.ack()
                taken.append(message.payload)

    threads = [threading.Thread(target=drain) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(taken) == list(range(200))


def test_an_unacknowledged_message_goes_back_when_its_channel_closes(folder: Path) -> None:
    with connect(folder) as first:
        send(first, "again")
        channel = first.channel()
        consumer = Consumer(
            channel, [Queue("eval", routing_key="eval")], callbacks=[lambda body, message: None]
        )
        with consumer:
            first.drain_events(timeout=GUARD_S)
        channel.close()

    with connect(folder) as second:
        assert take(second) == "again"


def test_a_sender_killed_at_any_moment_leaves_whole_messages_only(folder: Path) -> None:
    script = textwrap.dedent(
        f"""
        from tests.workers.test_broker import connect
        from pathlib import Path
        with connect(Path({str(folder)!r})) as connection, connection.SimpleQueue("eval") as simple:
            print("ready", flush=True)
            while True: simple.put("x" * 50_000)
        """
    )
    sender = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    try:
        assert sender.stdout is not None
        sender.stdout.readline()
        until(lambda: len(files(folder)) >= 20, every_s=0.001)
    finally:
        sender.kill()
        sender.communicate()

    with connect(folder) as connection, connection.SimpleQueue("eval") as simple:
        waiting = simple.qsize()
        bodies = [take(connection) for _ in range(waiting)]

    assert waiting >= 19
    assert set(bodies) == {"x" * 50_000}
    assert not (folder / "rejected").exists()


def test_what_killed_processes_left_half_done_is_removed(
    connection: Connection, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(connection, "waiting")
    for name in (".1-1-1.msg", ".1-1-1.msg.99.taken"):
        (folder / "eval" / name).write_text("the customer's words")

    connection.channel().queue_declare("eval")
    assert len(files(folder)) == 3  # they may be at work still

    monkeypatch.setattr("workers.broker.LEFT_BEHIND_S", -1.0)
    connection.channel().queue_declare("eval")

    assert len(files(folder)) == 1
    assert take(connection) == "waiting"
