"""Writing the lock files from what is declared and installed."""

from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import pytest

from config import lock

PACKAGES = {
    "web": ("1.0", ["base>=2", 'extra-part==3; extra == "more"', 'windows-only; sys_platform == "win32"']),
    "base": ("2.1+cpu", ["Leaf_Name"]),
    "extra-part": ("3", []),
    "leaf-name": ("0.4", ["base"]),
}


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def distribution(name: str) -> SimpleNamespace:
        if name not in PACKAGES:
            raise PackageNotFoundError(name)
        version, requires = PACKAGES[name]
        return SimpleNamespace(version=version, requires=requires)

    monkeypatch.setattr(lock, "distribution", distribution)


def test_the_closure_follows_what_applies_here():
    assert lock.closure(["web==1.0"]) == {"base": "2.1", "leaf-name": "0.4", "web": "1.0"}


def test_an_extra_brings_its_packages():
    assert lock.closure(["web[more]"])["extra-part"] == "3"


def test_an_extra_that_is_asked_for_later_counts_too():
    assert lock.closure(["web[more]", "web"])["extra-part"] == "3"
    assert lock.closure(["web", "web[more]"])["extra-part"] == "3"


def test_a_build_is_no_version():
    assert lock.installed("base") == "2.1"


def test_a_missing_package_is_named():
    with pytest.raises(SystemExit, match="absent is not installed"):
        lock.closure(["absent"])


def test_a_version_that_is_not_the_declared_one_is_named():
    with pytest.raises(SystemExit, match=r"web 1\.0 is installed, but web==2\.0 is asked for"):
        lock.closure(["web==2.0"])


def test_a_file_is_sorted_pinned_and_says_where_it_comes_from(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "ROOT", tmp_path)
    (tmp_path / "requirements").mkdir()

    lock.write("run.txt", {"web": "1.0", "base": "2.1"})

    assert (tmp_path / "requirements" / "run.txt").read_text() == f"{lock.HEADER}base==2.1\nweb==1.0\n"


def test_what_differs_by_platform_is_never_hashed():
    with pytest.raises(AssertionError):
        lock.hashed("torch", "2.13.0")


def test_what_is_hashed_is_in_the_lock():
    root = lock.ROOT
    pinned = {line.split("==")[0] for line in (root / "requirements" / "run.txt").read_text().splitlines()}

    assert set(lock.HASHED) <= pinned
    assert lock.NEVER_HASHED not in lock.HASHED
