"""One program at a time: started, watched, and ended with everything that it started.

The agent is the first process: what loses its parent becomes its child, and one signal to all
(``kill(-1)``) reaches every process but itself, including those that are being born.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # without enums, which cost a forked program time
import os
import select

from . import sockets
from .birth import Sheath, Unborn
from .frames import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CHUNK = 1 << 16
_TALK_LIMIT = 16 << 20  # of what the host said and the program does not read


class Programs:
    def __init__(self, stream: Stream, sheath: Sheath) -> None:
        self._stream = stream
        self._sheath = sheath
        self._next: Unborn | None = None
        self._wake = self._woken = -1

    def begin(self) -> None:
        """From now on this process watches for the end of its children."""
        self._wake, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        _signal.signal(_signal.SIGCHLD, _nothing)
        _signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)

    def prepare(self) -> None:
        """Have the next program's process wait already. In that process: see ``Unborn``."""
        if self._next is None:
            self._next = Unborn(self._sheath)

    def close(self) -> None:
        """As if it had never been; nothing runs."""
        _signal.set_wakeup_fd(-1)
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        os.close(self._wake)
        os.close(self._woken)
        if self._next is not None:
            os.kill(self._next.pid, _signal.SIGKILL)
            os.waitpid(self._next.pid, 0)
            self._next.close()

    def run(self, request: dict[str, Any], words: bytes, stdin: bytes) -> None:
        """Answers ``starting``, ``out``, ``err`` and ``talk`` frames, then ``done``. ``words`` is JSON:
        argv and env."""
        self._stream.send({"id": request["id"], "kind": "starting"})
        unborn = self._take()
        talks = bool(request.get("talk"))
        unborn.start(request["limits"], words, stdin=bool(stdin), talk=talks)
        _Run(self._stream, self._wake, request, unborn, stdin).watch()

    def _take(self) -> Unborn:
        unborn, self._next = self._next, None
        if unborn is not None and os.waitpid(unborn.pid, os.WNOHANG)[0]:
            unborn.close()  # something ended it while it waited
            unborn = None
        return unborn or Unborn(self._sheath)


class _Run:
    def __init__(
        self, stream: Stream, wake: int, request: dict[str, Any], unborn: Unborn, stdin: bytes
    ) -> None:
        self._stream = stream
        self._wake = wake
        self._id = request["id"]
        self._pid = unborn.pid
        self._ours = unborn.ends
        self._cap = int(request["output"])
        self._totals = {"out": 0, "err": 0}
        self._usage = [0.0, 0.0, 0.0]  # user, system, the largest process in bytes
        self._status: int | None = None
        self._over = False
        self._hold = False
        self._to_stdin = stdin
        self._to_talk = bytearray()
        self._hang_up = False
        self._talk_wanted = 0
        self._poll = select.poll()
        for descriptor in (stream.read_fd, wake, self._ours["out"], self._ours["err"]):
            self._poll.register(descriptor, select.POLLIN)
        if "in" in self._ours:
            self._poll.register(self._ours["in"], select.POLLOUT)

    def watch(self) -> None:
        while self._status is None:
            self._turn()
        self._end()
        for name in ("out", "err"):
            while name in self._ours and self._forward(name):
                pass
        while "talk" in self._ours and self._forward_talk():
            pass
        for descriptor in self._ours.values():
            os.close(descriptor)
        code = os.waitstatus_to_exitcode(self._status)
        user, system, largest = self._usage
        self._stream.send(
            {
                "id": self._id,
                "kind": "done",
                "exit": code if code >= 0 else None,
                "signal": -code if code < 0 else None,
                "user": user,
                "system": system,
                "largest": int(largest),
                "over": self._over,
            }
        )

    def _turn(self) -> None:
        """Wait for one thing to happen and do what it asks for."""
        while (frame := self._stream.take()) is not None:
            self._obey(*frame)
        if "talk" in self._ours:
            wanted = (0 if self._hold else select.POLLIN) | (select.POLLOUT if self._to_talk else 0)
            if wanted:
                self._poll.register(self._ours["talk"], wanted)
            elif self._talk_wanted:
                self._poll.unregister(self._ours["talk"])
            self._talk_wanted = wanted
        ready = {descriptor for descriptor, _ in self._poll.poll()}
        for name in ("out", "err"):
            if self._ours.get(name) in ready:
                self._forward(name)
        if self._ours.get("in") in ready:
            self._feed()
        if self._ours.get("talk") in ready:
            self._pass_on()
        if "talk" in self._ours and not self._hold and self._ours["talk"] in ready:
            self._forward_talk()
        if self._stream.read_fd in ready:
            self._stream.fill()
        if self._wake in ready:
            os.read(self._wake, 512)
            self._reap(os.WNOHANG)

    def _obey(self, header: dict[str, Any], body: bytes) -> None:
        op = header.get("op")
        if op == "kill":
            _kill_all()
        elif op == "talk":
            self._to_talk += body
            if len(self._to_talk) > _TALK_LIMIT:
                _kill_all()
            self._pass_on()
        elif op == "hang_up":
            self._hang_up = True
            self._pass_on()
        elif op in ("hold", "go_on"):
            self._hold = op == "hold"

    def _close(self, name: str) -> None:
        descriptor = self._ours.pop(name)
        if name != "talk" or self._talk_wanted:
            self._poll.unregister(descriptor)
        os.close(descriptor)

    def _forward(self, name: str) -> bool:
        """One chunk of output to the host; False when there is none."""
        try:
            chunk = os.read(self._ours[name], _CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        if not chunk or self._over:
            self._close(name)
            return False
        self._totals[name] += len(chunk)
        self._stream.send({"id": self._id, "kind": name}, chunk)
        if self._totals[name] > self._cap:
            self._over = True
            _kill_all()
        return True

    def _forward_talk(self) -> bool:
        try:
            chunk = os.read(self._ours["talk"], _CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        if not chunk:
            self._close("talk")
            self._stream.send({"id": self._id, "kind": "talk_end"})
            return False
        self._stream.send({"id": self._id, "kind": "talk"}, chunk)
        return True

    def _pass_on(self) -> None:
        """To the program, as much as it takes."""
        if "talk" not in self._ours:
            return
        try:
            while self._to_talk:
                del self._to_talk[: os.write(self._ours["talk"], self._to_talk[:_CHUNK])]
        except BlockingIOError:
            return
        except OSError:
            self._to_talk.clear()
        if self._hang_up:
            sockets.hang_up(self._ours["talk"])
            self._hang_up = False

    def _feed(self) -> None:
        try:
            self._to_stdin = self._to_stdin[os.write(self._ours["in"], self._to_stdin[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:
            self._to_stdin = b""
        if not self._to_stdin:
            self._close("in")

    def _end(self) -> None:
        """End and wait for all that is left."""
        _kill_all()
        self._reap(0)

    def _reap(self, options: int) -> None:
        while True:
            try:
                ended, status, usage = os.wait4(-1, options)
            except ChildProcessError:
                return
            if not ended:
                return
            if ended == self._pid:
                self._status = status
            self._usage[0] += usage.ru_utime
            self._usage[1] += usage.ru_stime
            self._usage[2] = max(self._usage[2], usage.ru_maxrss * 1024)


def _kill_all() -> None:
    try:
        os.kill(-1, _signal.SIGKILL)
    except OSError:
        return


def _nothing(number: int, frame: object) -> None:
    """SIGCHLD only wakes the agent."""
