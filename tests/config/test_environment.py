"""Making the virtual environment, with a pip that only writes down what it was asked."""

import subprocess
import sys
from pathlib import Path

import pytest

from config import environment


class FakePip:
    """Stands where the environment's own Python would be called."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.made: list[Path] = []
        self.works, self.code = True, 0

    def run(self, command: list[object], **options: object) -> "subprocess.CompletedProcess[str]":
        words = [str(word) for word in command[1:]]
        if words == ["-m", "pip", "--version"]:
            return subprocess.CompletedProcess(command, 0 if self.works else 1)
        self.calls.append(words[2:])
        if self.code:
            raise subprocess.CalledProcessError(self.code, "pip")
        return subprocess.CompletedProcess(command, 0)

    def create(self, folder: Path, with_pip: bool) -> None:
        assert with_pip
        self.made.append(folder)
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        (folder / "bin" / "python").touch()

    def installed(self) -> list[str]:
        return [Path(call[-1]).name for call in self.calls if "-r" in call]


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePip:
    fake = FakePip()
    (tmp_path / "requirements").mkdir()
    for name in ("hashed.txt", "run.txt", "dev.txt", "vllm.txt"):
        (tmp_path / "requirements" / name).write_text(f"{name}==1\n")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "REQUIREMENTS", tmp_path / "requirements")
    monkeypatch.setattr(environment.subprocess, "run", fake.run)
    monkeypatch.setattr(environment.venv, "create", fake.create)
    return fake


def test_the_first_time_says_how_much_it_downloads_and_installs(pip: FakePip, tmp_path: Path, capsys):
    assert environment.main("run") == 0

    assert pip.made == [tmp_path / ".venv"]
    assert pip.installed() == ["hashed.txt", "run.txt"]
    assert "this downloads about 3 GB" in capsys.readouterr().out


def test_hashes_are_required_where_there_are_some(pip: FakePip):
    environment.main("run")

    strict = {Path(call[-1]).name: "--require-hashes" in call for call in pip.calls if "-r" in call}
    assert strict == {"hashed.txt": True, "run.txt": False}


def test_the_second_time_does_nothing(pip: FakePip, capsys):
    environment.main("run")
    pip.calls.clear()
    capsys.readouterr()

    assert environment.main("run") == 0
    assert pip.calls == []
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("changed", ["requirements/run.txt", "requirements/hashed.txt", "pyproject.toml"])
def test_a_changed_lock_installs_again(pip: FakePip, tmp_path: Path, changed: str):
    environment.main("run")
    pip.calls.clear()
    (tmp_path / changed).write_text("changed==2\n")

    environment.main("run")

    assert pip.installed() == ["hashed.txt", "run.txt"]
    assert len(pip.made) == 1


def test_tools_for_tests_are_installed_after_what_running_needs(pip: FakePip):
    environment.main("dev")

    assert pip.installed() == ["hashed.txt", "run.txt", "dev.txt"]


def test_running_needs_nothing_more_after_the_tools_were_installed(pip: FakePip):
    environment.main("dev")
    pip.calls.clear()

    environment.main("run")

    assert pip.calls == []


def test_vllm_lives_apart_without_what_does_not_fit(pip: FakePip, tmp_path: Path):
    environment.main("vllm")

    assert pip.made == [tmp_path / ".venv-vllm"]
    assert pip.calls[-1][:3] == ["uninstall", "-q", "-y"]


def test_a_failed_install_is_named_and_tried_again(pip: FakePip, capsys):
    pip.code = 2

    assert environment.main("run") == 1
    assert "Installing failed (pip ended with 2)" in capsys.readouterr().out
    pip.code = 0
    pip.calls.clear()
    assert environment.main("run") == 0
    assert pip.installed() == ["hashed.txt", "run.txt"]


def test_a_failed_upgrade_forgets_that_the_old_one_was_complete(pip: FakePip, tmp_path: Path):
    environment.main("run")
    lock = tmp_path / "requirements" / "run.txt"
    old = lock.read_text()
    lock.write_text("changed==2\n")
    pip.code = 2
    environment.main("run")
    pip.code = 0
    pip.calls.clear()
    lock.write_text(old)

    environment.main("run")

    assert pip.installed() == ["hashed.txt", "run.txt"]


def test_an_environment_that_was_interrupted_is_made_again(pip: FakePip, tmp_path: Path):
    pip.create(tmp_path / ".venv", with_pip=True)
    pip.made.clear()
    pip.works = False

    environment.main("run")

    assert pip.made == [tmp_path / ".venv"]


def test_an_environment_whose_python_is_gone_is_made_again(pip: FakePip, tmp_path: Path):
    environment.main("run")
    (tmp_path / ".venv" / "bin" / "python").unlink()

    environment.main("run")

    assert len(pip.made) == 2


@pytest.mark.parametrize("version", [(3, 10, 1), (3, 14, 0)])
def test_another_python_is_refused_in_words(pip: FakePip, monkeypatch, capsys, version: tuple[int, ...]):
    monkeypatch.setattr(environment.sys, "version_info", version)

    assert environment.main("run") == 1
    assert "Flywheel needs Python 3.11 to 3.13" in capsys.readouterr().out
    assert pip.made == []


def test_an_unknown_kind_is_wrong_usage(pip: FakePip, capsys):
    assert environment.main("everything") == 2
    assert "run | dev | vllm" in capsys.readouterr().out


def test_nothing_but_the_standard_library_is_needed():
    code = "import runpy; runpy.run_path('config/environment.py', run_name='x')"
    root = Path(__file__).resolve().parents[2]

    done = subprocess.run([sys.executable, "-S", "-I", "-c", code], cwd=root, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
