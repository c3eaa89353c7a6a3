"""Ending what a launcher started, whatever state it is in."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

STOP_TIMEOUT_S = 20.0


def session_stop(leader: subprocess.Popen[bytes]) -> None:
    """Ask the leader of a session to end, wait, then kill what is left of the session.

    The supervisor's programs have process groups of their own but stay in its session, so they are
    found even after it died before them.
    """
    # A second Ctrl-C must not leave orphans.
    previous = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        if leader.poll() is None:
            leader.send_signal(signal.SIGTERM)
            try:
                leader.wait(timeout=STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                leader.kill()
                leader.wait()
        while left := members_of(leader.pid):
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def members_of(session: int) -> list[int]:
    """Processes of the session that have not ended."""
    return [pid for pid in _running() if _session_of(pid) == session]


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return None


def _running() -> list[int]:
    """All processes, without those that only wait to be collected."""
    stats = list(Path("/proc").glob("[0-9]*/stat"))
    if stats:
        return [int(path.parent.name) for path in stats if not _is_ended(path)]
    out = subprocess.run(["ps", "-A", "-o", "pid=,state="], capture_output=True, text=True).stdout
    pairs = [line.split() for line in out.splitlines()]
    return [int(pid) for pid, state in pairs if not state.startswith("Z")]


def _is_ended(stat: Path) -> bool:
    try:  # the name before the state stands in parentheses and may hold anything
        return stat.read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True
