"""The host's side of a zygote: one bwrap with a warm interpreter that is forked for each sandbox.

It depends on no event loop and on no thread. Its life hangs on its control socket: when this process
ends, in whatever way, the zygote reads the end of it and the kernel ends all its sandboxes.
"""

import contextlib
import json
import os
import select
import socket
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from workers.sandbox.bundle import agent_zip
from workers.sandbox.descriptors import Descriptors
from workers.sandbox.images import Image
from workers.sandbox.installation import Python, sandbox_uid
from workers.sandbox.root_view import AGENT, Files, environment, root_options, wrapper

_START_S = 60.0
_END_S = 5.0
_SETTLE_S = 0.5
_INSIDE_UID = 1000
_COVERED = 1 << 16  # bytes of the folders that each sandbox covers with its own
_NAMESPACES = ("user", "pid", "net", "ipc", "uts", "cgroup")


class ZygoteFailed(OSError):
    """It did not start, or is gone; the message is its own."""


class Zygote:
    """Started by ``start_zygote``."""

    def __init__(self, process: "subprocess.Popen[bytes]", control: socket.socket, said: IO[bytes]) -> None:
        self.owner = os.getpid()
        self._process = process
        self._control = control
        self._said = said

    @property
    def alive(self) -> bool:
        """False also in a process that was forked from the one that started it."""
        return self.owner == os.getpid() and self._process.poll() is None

    def settle(self) -> None:
        """Wait a moment for the end of a process that is ending."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_SETTLE_S)

    def spawn(self, size: int, *, moves: bool = False) -> socket.socket:
        """Ask for a sandbox whose folders hold ``size`` bytes each. What is returned is its socket, on
        which it will say that it is ready. ``moves``: it is to be moved into a cgroup, and waits for a
        word after that. Does not wait. Raises ``ZygoteFailed``."""
        return spawn(self._control, size, moves=moves)

    def copy(self) -> socket.socket:
        """Ask for a copy that makes sandboxes too, and returns the socket to it: it says there that it
        is ready, then ``spawn`` takes it. Does not wait. Raises ``ZygoteFailed``."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return _send(self._control, b"copy", ours, theirs)

    def close(self) -> None:
        """End it and every sandbox that it made."""
        self._control.close()
        self._said.close()
        if self.owner != os.getpid():
            return
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def wait_ready(self) -> None:
        """Raises ``ZygoteFailed`` with what bwrap or the interpreter said."""
        if not select.select([self._control], [], [], _START_S)[0]:
            raise ZygoteFailed("the warm interpreter did not start in time")
        answer = self._control.recv(4096)
        if not answer:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
            self._said.seek(0)
            said = self._said.read(4096).decode("utf-8", "replace").strip()
            raise ZygoteFailed(said or f"bwrap ended with {self._process.returncode}")
        if error := json.loads(answer).get("error"):
            raise ZygoteFailed(str(error))


def spawn(control: socket.socket, size: int, *, moves: bool = False) -> socket.socket:
    """A sandbox from whatever listens on ``control``; see ``Zygote.spawn``."""
    ours, theirs = socket.socketpair()
    asked = b"%d %d %d" % (_INSIDE_UID, size, moves)
    return _send(control, asked, ours, theirs)


def _send(control: socket.socket, asked: bytes, ours: socket.socket, theirs: socket.socket) -> socket.socket:
    try:
        socket.send_fds(control, [asked], [theirs.fileno()])
    except OSError as error:
        ours.close()
        raise ZygoteFailed(f"the warm interpreter is gone ({error})") from error
    finally:
        theirs.close()
    ours.setblocking(False)
    return ours


def start_zygote(
    bwrap: Path, python: Python, image: Image | None, preimport: Sequence[str], filter_program: bytes
) -> Zygote:
    """Start one and wait until it is warm (tens of milliseconds, more with large modules). Raises
    ``ZygoteFailed``."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    said = tempfile.TemporaryFile()  # noqa: SIM115
    uid = sandbox_uid()
    try:
        with Descriptors() as descriptors:
            asked = {"preimport": list(preimport), "seccomp": descriptors.memory(filter_program)}
            inner = [python.executable, "-s", "-S", "-P", "-B", AGENT]
            inner += ["zygote", str(theirs.fileno()), json.dumps(asked)]
            options = bwrap_options(bwrap, python, image, descriptors.memory)
            # Symbols are looked up once here, not again in every fork; the usual seed is there already.
            options += ["--setenv", "LD_BIND_NOW", "1", "--setenv", "FLYWHEEL_SEED", "0"]
            process = subprocess.Popen(
                [*options, "--", *inner],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                pass_fds=(*descriptors.numbers, theirs.fileno()),
                env={},
                cwd="/",
                user=uid,
                group=uid,
                extra_groups=None if uid is None else (),
                start_new_session=True,
            )
    except OSError as error:
        ours.close()
        said.close()
        raise ZygoteFailed(str(error)) from error
    finally:
        theirs.close()
    zygote = Zygote(process, ours, said)
    try:
        zygote.wait_ready()
    except BaseException:
        zygote.close()
        raise
    return zygote


def bwrap_options(
    bwrap: Path,
    python: Python,
    image: Image | None,
    memory: Callable[[bytes], int],
    *,
    size: int = _COVERED,
) -> list[str]:
    """The namespaces, the root (with small folders of ``size`` bytes each) and the environment of the
    first process."""
    options = [str(bwrap), *(f"--unshare-{name}" for name in _NAMESPACES)]
    options += ["--as-pid-1", "--new-session", "--hostname", "sandbox"]
    options += ["--uid", str(_INSIDE_UID), "--gid", str(_INSIDE_UID), "--clearenv"]
    for name, value in environment(python, image).items():
        options += ["--setenv", name, value]
    files = Files(memory(agent_zip()), memory(wrapper(python)), memory(wrapper(python)))
    return [*options, *root_options(python, image, files, size=size)]
