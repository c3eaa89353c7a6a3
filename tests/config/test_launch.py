"""The launcher, as far as it goes without starting a stack."""

import json
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from config import launch


def test_a_taken_port_is_named_with_another_to_choose(tmp_path: Path, capsys):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]

        with pytest.raises(SystemExit) as ended, launch.stack(port, tmp_path / "data"):
            pass

    assert ended.value.code == 1
    assert f"Port {port} is taken (PORT). Choose another: make run PORT=" in capsys.readouterr().err


def test_a_taken_engine_port_is_named_too(tmp_path: Path, capsys, monkeypatch):
    monkeypatch.setattr(launch, "port_is_free", lambda number: number != 9012)

    with pytest.raises(SystemExit), launch.stack(9000, tmp_path / "data"):
        pass

    assert "Port 9012 is taken (engine port)." in capsys.readouterr().err


def test_a_data_folder_is_used_by_one_stack(tmp_path: Path, capsys):
    with launch._data_lock(tmp_path), pytest.raises(SystemExit) as ended, launch._data_lock(tmp_path):
        pass

    assert ended.value.code == 1
    assert f"Flywheel already runs on {tmp_path}. Stop it, or start a second one" in capsys.readouterr().err


def test_the_lock_falls_with_the_process_that_held_it(tmp_path: Path):
    code = (
        "import os, pathlib, sys; from config import launch\n"
        "lock = launch._data_lock(pathlib.Path(sys.argv[1])); lock.__enter__(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=launch.ROOT)

    with launch._data_lock(tmp_path) as lock:
        assert not lock.closed


def test_a_folder_that_cannot_be_made_is_refused_in_words(tmp_path: Path, capsys):
    (tmp_path / "file").write_text("")

    with pytest.raises(SystemExit), launch._data_lock(tmp_path / "file" / "data"):
        pass

    assert "cannot hold the data: Not a directory." in capsys.readouterr().err


def test_a_missing_model_is_named(tmp_path: Path, capsys, monkeypatch):
    monkeypatch.setenv("FLYWHEEL_BASE_MODEL_PATH", str(tmp_path / "none"))
    monkeypatch.setattr(launch, "port_is_free", lambda number: True)

    with pytest.raises(SystemExit), launch.stack(9000, tmp_path / "data"):
        pass

    assert "FLYWHEEL_BASE_MODEL_PATH" in capsys.readouterr().err


@pytest.mark.parametrize(
    "prompt", ["Total of BL-7?\nTOTAL GBP 210.00", "O'Neil's \"quoted\" $HOME `id` \\n", "café — 12 €"]
)
def test_the_curl_line_is_shell_and_json(prompt: str):
    line = launch._curl("http://127.0.0.1:8000", "fw_key", prompt)

    words = shlex.split(line)
    echoed = subprocess.run(["sh", "-c", line.replace("curl", "printf '%s\\n'", 1)], capture_output=True)
    assert words[:2] == ["curl", "http://127.0.0.1:8000/v1/chat/completions"]
    assert "Authorization: Bearer fw_key" in words
    assert json.loads(words[words.index("-d") + 1])["messages"][0]["content"] == prompt
    assert json.loads(echoed.stdout.splitlines()[-1])["messages"][0]["content"] == prompt


def test_a_turn_empties_only_a_folder_that_a_turn_made(tmp_path: Path, capsys):
    (tmp_path / "flywheel.sqlite3").write_text("months of work")

    with pytest.raises(SystemExit):
        launch._empty(tmp_path)

    assert (tmp_path / "flywheel.sqlite3").read_text() == "months of work"
    assert f"{tmp_path} holds data that no turn made." in capsys.readouterr().err


def test_a_second_turn_starts_from_nothing(tmp_path: Path):
    launch._empty(tmp_path / "turn")
    (tmp_path / "turn" / "artifacts").mkdir()
    (tmp_path / "turn" / "flywheel.sqlite3").write_text("old")

    launch._empty(tmp_path / "turn")

    assert {path.name for path in (tmp_path / "turn").iterdir()} == {"run.lock", launch.TURN_MARK}


def test_the_processes_get_ports_and_folders_of_their_own(tmp_path: Path):
    environment = launch._environment(8200, tmp_path)

    assert environment["FLYWHEEL_DATA"] == str(tmp_path)
    assert environment["FLYWHEEL_ENGINE_STANDARD"].endswith(":8211")
    assert environment["FLYWHEEL_ENGINE_HIGHSPEED"].endswith(":8212")
    assert len(environment["FLYWHEEL_SOCKET"]) < 107


def test_screenshots_need_an_installation(tmp_path: Path, capsys):
    assert launch.screenshots_command(tmp_path) == 1
    assert "Run `make turn` first" in capsys.readouterr().out


def test_ctrl_c_before_anything_runs_is_no_traceback(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(launch, "run_command", lambda port, data: launch._as_interrupt())
    monkeypatch.setattr(sys, "argv", ["launch", "run"])
    monkeypatch.setattr(launch.signal, "signal", lambda *_: None)

    assert launch.main() == 130


def test_a_new_data_folder_is_nobody_elses(tmp_path: Path):
    with launch._data_lock(tmp_path / "new"):
        mode = (tmp_path / "new").stat().st_mode

    assert mode & 0o077 == 0


def test_a_start_waits_until_the_engines_hold_the_adapter_in_service(monkeypatch: pytest.MonkeyPatch):
    class Api:
        def __init__(self, *_: str) -> None: ...

        def __enter__(self):
            return self

        def __exit__(self, *_: object) -> None: ...

        def get(self, path: str, **query: str):
            assert (path, query) == ("/versions", {"state": "in_service"})
            return [{"adapter_name": "run-1-v40-a1"}]

    answers = {"http://s": [set(), {"run-1-v40-a1"}], "http://h": [{"pocket"}, {"pocket", "run-1-v40-a1"}]}
    looked: list[str] = []

    def models_of(engine: str) -> set[str]:
        looked.append(engine)
        return answers[engine].pop(0)

    monkeypatch.setattr(launch, "Client", Api)
    monkeypatch.setattr(launch, "_models_of", models_of)
    engines = {"FLYWHEEL_ENGINE_STANDARD": "http://s", "FLYWHEEL_ENGINE_HIGHSPEED": "http://h"}

    launch._wait_until_serving("http://web", "fw_key", engines)

    assert looked == ["http://s", "http://s", "http://h", "http://h"]
