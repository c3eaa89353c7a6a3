"""The embedded broker: a folder per queue, a file per message, for one machine.

A kombu transport, named ``workers.broker:Transport`` in Celery's settings of both sides. Sending
writes a dot-file and renames it, so a reader sees whole messages only (kombu's own filesystem
transport can read a half-written one, and that stops the worker). Taking is an atomic rename, so no
two workers get the same message. What was taken is deleted at once and unreadable files are moved to
``rejected``: nothing that was delivered stays on disk. There is no fanout, so no remote control.

A message that a killed worker held is lost; whoever planned the work sends it again.
"""

import contextlib
import itertools
import json
import os
import re
import time
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.exceptions import ChannelError
from kombu.transport import virtual

_QUEUE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*")
_SUFFIX = ".msg"
_sequence = itertools.count()

LEFT_BEHIND_S = 60.0  # a dot-file lives for milliseconds; this old, its process was killed


class Channel(virtual.Channel):
    """Moves messages between memory and ``transport_options["data_folder"]``."""

    supports_fanout = False
    # kombu's own way back writes what it cannot restore, in clear, to a file in /tmp.
    do_restore = False

    def close(self) -> None:
        if not self.closed and self._qos is not None:
            self._qos.restore_unacked()
        super().close()

    def _new_queue(self, queue: str, **kwargs: Any) -> None:
        """Called when a process declares the queue: remove what killed processes left half done."""
        with contextlib.suppress(FileNotFoundError):
            for path in self._folder(queue).glob(".*"):
                with contextlib.suppress(OSError):
                    # ctime: a rename changes it, and a message may have waited for long before.
                    if time.time() - path.stat().st_ctime > LEFT_BEHIND_S:
                        path.unlink()

    def _put(self, queue: str, message: dict[str, Any], **kwargs: Any) -> None:
        folder = self._folder(queue)
        # Names sort by time of sending; the counter orders what one process sends within a clock tick.
        name = f"{time.time_ns():020d}-{os.getpid()}-{next(_sequence):09d}{_SUFFIX}"
        partial = folder / f".{name}"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(partial, "wb", opener=_private) as stream:
                stream.write(json.dumps(message, separators=(",", ":")).encode())
            partial.rename(folder / name)
        except OSError as error:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise ChannelError(f"cannot write to queue {queue}: {error.strerror}") from error

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        folder = self._folder(queue)
        for name in _waiting(folder):
            taken = folder / f".{name}.{os.getpid()}.taken"
            try:
                (folder / name).rename(taken)
                content = taken.read_bytes()
            except OSError:  # another worker was faster, or it is no file
                continue
            message = _parse(content)
            if message is None:
                self._reject(taken, queue, name)
                continue
            taken.unlink()
            return message
        raise Empty

    def _size(self, queue: str) -> int:
        return len(_waiting(self._folder(queue)))

    def _purge(self, queue: str) -> int:
        removed = 0
        folder = self._folder(queue)
        for name in _waiting(folder):
            with contextlib.suppress(OSError):
                (folder / name).unlink()
                removed += 1
        return removed

    def _folder(self, queue: str) -> Path:
        if not _QUEUE.fullmatch(queue):
            raise ChannelError(f"not a queue name: {queue[:80]!r}")
        return self._root / queue

    def _reject(self, taken: Path, queue: str, name: str) -> None:
        rejected = self._root / "rejected"
        with contextlib.suppress(OSError):
            rejected.mkdir(mode=0o700, exist_ok=True)
            taken.rename(rejected / f"{queue}-{name}")

    @property
    def _root(self) -> Path:
        return Path(self.connection.client.transport_options["data_folder"])


class Transport(virtual.Transport):
    """Polls every 50 ms unless ``transport_options["polling_interval"]`` says otherwise."""

    Channel = Channel
    polling_interval = 0.05
    default_port = 0
    driver_type = "filesystem"
    driver_name = "flywheel"
    # One table of declared queues for all connections of the process; the folders are shared anyway.
    global_state = virtual.BrokerState()

    def __init__(self, client: Any, **kwargs: Any) -> None:
        super().__init__(client, **kwargs)
        self.state = self.global_state

    def driver_version(self) -> str:
        return "1"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _waiting(folder: Path) -> list[str]:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return sorted(name for name in names if name.endswith(_SUFFIX) and not name.startswith("."))


def _parse(content: bytes) -> dict[str, Any] | None:
    """The message, or None for what kombu would stumble over."""
    try:
        message = json.loads(content)
        properties = message["properties"]
        sound = (
            isinstance(message["body"], str)
            and isinstance(message["headers"], dict)
            and isinstance(properties["delivery_tag"], str)
            and isinstance(properties["delivery_info"], dict)
            and properties.get("body_encoding") in (None, "base64", "utf-8")
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return message if sound else None
