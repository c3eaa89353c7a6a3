"""Secrets that an installation makes for itself."""

import stat
import subprocess
import sys
from pathlib import Path

from cryptography.fernet import Fernet

from config.launch import ROOT
from config.secrets import read_or_create
from tests.waiting import GUARD_S

RACER = """
import pathlib, sys, time
from config.secrets import read_or_create
start = pathlib.Path(sys.argv[2])
print("ready", flush=True)
while not start.exists():
    time.sleep(0.001)
print(read_or_create(pathlib.Path(sys.argv[1]), "token"))
"""


def test_the_first_call_makes_it_and_every_later_one_reads_it(tmp_path: Path):
    first = read_or_create(tmp_path / "secrets" / "django", "token")

    assert len(first) >= 50
    assert read_or_create(tmp_path / "secrets" / "django", "token") == first


def test_only_its_owner_may_read_it(tmp_path: Path):
    read_or_create(tmp_path / "secrets" / "django", "token")

    assert stat.S_IMODE((tmp_path / "secrets" / "django").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "secrets").stat().st_mode) == 0o700


def test_an_encryption_key_encrypts(tmp_path: Path):
    key = Fernet(read_or_create(tmp_path / "key", "fernet"))

    assert key.decrypt(key.encrypt(b"text")) == b"text"


def test_processes_that_start_together_agree(tmp_path: Path):
    start = tmp_path / "start"
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path / "key"), str(start)],
            cwd=ROOT, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(4)
    ]  # fmt: skip
    for racer in racers:
        assert racer.stdout is not None
        racer.stdout.readline()

    start.touch()
    values = {racer.communicate(timeout=GUARD_S)[0] for racer in racers}

    assert len(values) == 1
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".key")] == []


def test_losing_the_race_gives_the_winners_value(tmp_path: Path, monkeypatch):
    path = tmp_path / "key"

    def link(source: Path, target: Path) -> None:
        target.write_text("the winner's\n")
        raise FileExistsError

    monkeypatch.setattr("config.secrets.os.link", link)

    assert read_or_create(path, "token") == "the winner's"
