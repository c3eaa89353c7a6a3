"""Ending a session of processes."""

import os
import signal
import subprocess
import sys

import pytest

from config import processes
from config.processes import members_of, session_stop

# A supervisor with one program in a group of its own that ignores being asked to end.
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
SUPERVISOR = f"""
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", {STUBBORN!r}], preexec_fn=os.setpgrp)
print("up", flush=True)
time.sleep(60)
"""


@pytest.fixture
def leader():
    process = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR], stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    for pid in members_of(process.pid):
        os.kill(pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()


def test_the_members_of_a_session_are_found(leader: subprocess.Popen[bytes]):
    assert len(members_of(leader.pid)) == 2


def test_a_program_that_ignores_the_end_is_killed(leader: subprocess.Popen[bytes]):
    session_stop(leader)

    assert members_of(leader.pid) == []


def test_what_a_dead_supervisor_left_is_killed(leader: subprocess.Popen[bytes]):
    leader.kill()
    leader.wait()
    assert members_of(leader.pid)

    session_stop(leader)

    assert members_of(leader.pid) == []


def test_a_supervisor_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(processes, "STOP_TIMEOUT_S", 0.2)
    code = STUBBORN.replace("time.sleep(60)", "print(1, flush=True); time.sleep(60)")
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()

        session_stop(process)

        assert process.returncode == -signal.SIGKILL


def test_ctrl_c_works_again_afterwards(leader: subprocess.Popen[bytes]):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)

    session_stop(leader)

    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
