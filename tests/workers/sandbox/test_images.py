"""Environment images: the same everywhere, built once, kept as artifacts."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from artifacts import ArtifactStore
from workers.sandbox import image_list as lists
from workers.sandbox import images
from workers.sandbox.image_build import archive, files_digest, image_files
from workers.sandbox.image_list import ImageList, image_list, image_names
from workers.sandbox.images import Image, image_build
from workers.sandbox.protocol import SandboxUnavailable

ROOT = Path(__file__).parents[3]


class Host:
    """A site-packages folder with the package ``sums`` and its command, as an installer leaves it."""

    def __init__(self, folder: Path, *, installer: str = "pip", umask: int = 0o022, code: str = "A = 1\n"):
        before = os.umask(umask)
        self.packages = folder / "lib" / "site-packages"
        info = self.packages / "sums-1.0.dist-info"
        for path, text in {
            self.packages / "sums" / "__init__.py": code,
            self.packages / "sums" / "tests" / "test_sums.py": "assert True\n",
            self.packages / "sums" / "__pycache__" / "__init__.cpython-311.pyc": installer,
            info / "METADATA": "Metadata-Version: 2.1\nName: sums\nVersion: 1.0\nRequires-Dist: adds>=2\n",
            info / "INSTALLER": installer,
            info / "direct_url.json": f'{{"url": "file://{folder}"}}',
            folder / "bin" / "sums": f"#!{folder}/bin/python\nprint(1)\n",
            self.packages / "adds.py": "B = 2\n",
            self.packages / "adds-2.5.dist-info" / "METADATA": "Name: adds\nVersion: 2.5\n",
            self.packages / "adds-2.5.dist-info" / "RECORD": "adds.py,,\nadds-2.5.dist-info/METADATA,,\n",
        }.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (folder / "bin" / "sums").chmod(0o777 & ~umask)
        listed = [path.relative_to(self.packages) for path in self.packages.rglob("*") if path.is_file()]
        rows = [str(path) for path in listed if "adds" not in str(path)]
        rows += ["../../bin/sums", "sums-1.0.dist-info/RECORD"]
        (info / "RECORD").write_text("".join(f"{row},sha256=x,{len(installer)}\n" for row in rows))
        os.umask(before)


@pytest.fixture
def declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """``declare(text, host)``: the list of that text, read on that host."""

    def call(text: str, host: Host | None = None, name: str = "small") -> ImageList:
        folder = tmp_path / "lists"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.toml").write_text(text)
        if host is not None:
            monkeypatch.setattr(sys, "path", [str(host.packages), *sys.path])
        return image_list(name, folder)

    return call


SUMS = 'packages = ["sums==1.0"]\ndependencies = true\ncommands = ["sums"]\n'


def test_an_image_holds_its_packages_and_commands_and_nothing_of_the_host(tmp_path: Path, declare) -> None:  # type: ignore[no-untyped-def]
    declared = declare(SUMS + '[files]\n"share/rules.txt" = "none"\n', Host(tmp_path / "host"))

    files = {file.path: file for file in image_files(declared)}

    assert sorted(files) == [
        "bin/sums",
        "lib/adds-2.5.dist-info/METADATA",
        "lib/adds.py",
        "lib/sums-1.0.dist-info/METADATA",
        "lib/sums/__init__.py",
        "share/rules.txt",
    ]
    assert files["bin/sums"].read() == b"#!/usr/bin/env python3\nprint(1)\n"
    assert (files["bin/sums"].mode, files["lib/adds.py"].mode) == (0o755, 0o644)
    assert files["share/rules.txt"].read() == b"none"


def test_two_hosts_give_the_same_digest_and_the_same_archive(tmp_path: Path, declare) -> None:  # type: ignore[no-untyped-def]
    built = []
    for name, installer, umask in (("one", "pip", 0o022), ("two", "uv 0.9", 0o077)):
        host = Host(tmp_path / name, installer=installer, umask=umask)
        files = image_files(declare(SUMS, host))
        assert all(str(host.packages.parent) not in str(file.read()) for file in files)
        built.append((files_digest(files), archive(files)))

    assert built[0] == built[1]


def test_other_content_is_another_digest(tmp_path: Path, declare) -> None:  # type: ignore[no-untyped-def]
    one = image_files(declare(SUMS, Host(tmp_path / "one")))
    two = image_files(declare(SUMS, Host(tmp_path / "two", code="A = 2\n")))

    assert files_digest(one) != files_digest(two)


def test_dependencies_are_resolved_to_what_is_installed(tmp_path: Path, declare) -> None:  # type: ignore[no-untyped-def]
    host = Host(tmp_path / "host")

    assert declare(SUMS, host).packages == ("adds==2.5", "sums==1.0")
    assert declare('packages = ["sums==1.0"]').packages == ("sums==1.0",)


@pytest.mark.parametrize(
    ("text", "reason", "fix"),
    [
        ('packages = ["absent-package==1"]', "absent-package==1, which is not installed", "make setup"),
        ('packages = ["sums==2.0"]', "sums==2.0, but 1.0 is installed", "make setup"),
        ('packages = ["sums"]', "'sums', which is not name==version", "Pin it exactly"),
        ('packages = ["sums>=1.0"]', "not name==version", "Pin it exactly"),
        ('packages = ["not a package"]', "not name==version", "Pin it exactly"),
        ('package = ["sums==1.0"]', "declares 'package'", "Correct"),
    ],
)
def test_a_list_that_cannot_be_had_says_why_and_what_to_do(  # type: ignore[no-untyped-def]
    tmp_path: Path, declare, text: str, reason: str, fix: str
) -> None:
    with pytest.raises(SandboxUnavailable) as refused:
        declare(text, Host(tmp_path / "host"))

    assert reason in refused.value.reason
    assert fix in refused.value.fix


def test_a_command_that_no_package_has_is_refused(tmp_path: Path, declare) -> None:  # type: ignore[no-untyped-def]
    declared = declare('packages = ["sums==1.0"]\ncommands = ["subs"]', Host(tmp_path / "host"))

    with pytest.raises(SandboxUnavailable, match="'subs'"):
        image_files(declared)


def test_an_unknown_image_is_refused_with_those_there_are() -> None:
    with pytest.raises(SandboxUnavailable) as refused:
        image_list("windows")

    assert "'windows'" in refused.value.reason
    assert all(name in refused.value.fix for name in image_names())


def test_an_image_is_unpacked_for_every_user_with_caches_that_python_trusts(  # type: ignore[no-untyped-def]
    tmp_path: Path, declare, store: ArtifactStore
) -> None:
    before = os.umask(0o077)
    try:
        image = image_build(declare(SUMS, Host(tmp_path / "host")), cache=tmp_path / "cache", store=store)
    finally:
        os.umask(before)

    modes = {
        path.relative_to(image.root).as_posix(): path.stat().st_mode & 0o777 for path in image.root.rglob("*")
    }
    assert modes["bin/sums"] == modes["lib"] == modes["lib/sums"] == 0o755
    assert modes["lib/adds.py"] == 0o644
    cached = Path(importlib.util.cache_from_source(str(image.root / "lib" / "adds.py")))
    assert cached.read_bytes()[4:8] == (1).to_bytes(4, "little")  # hash-based, unchecked
    said = subprocess.run(
        [
            sys.executable,
            "-S",
            "-P",
            "-B",
            "-c",
            "import sums, adds; print(sums.A + adds.B, adds.__cached__)",
        ],
        env=image.environment(str(image.root)),
        capture_output=True,
        text=True,
    )
    assert said.stdout == f"3 {cached}\n"


def test_an_image_is_built_once_and_then_found(  # type: ignore[no-untyped-def]
    tmp_path: Path, declare, store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = declare(SUMS, Host(tmp_path / "host"))
    first = image_build(declared, cache=tmp_path / "cache", store=store)
    monkeypatch.setattr(images, "image_files", _must_not_build)

    assert image_build(declared, cache=tmp_path / "cache", store=store) == first


def test_a_host_without_the_build_takes_it_from_the_store(  # type: ignore[no-untyped-def]
    tmp_path: Path, declare, store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = declare(SUMS, Host(tmp_path / "host"))
    first = image_build(declared, cache=tmp_path / "one", store=store)
    monkeypatch.setattr(images, "image_files", _must_not_build)

    second = image_build(declared, cache=tmp_path / "two", store=store)

    assert (second.digest, second.root.parent) == (first.digest, tmp_path / "two")
    assert (second.root / "lib" / "sums" / "__init__.py").read_text() == "A = 1\n"


def test_a_store_that_does_not_know_the_image_gets_it(tmp_path: Path, declare, store: ArtifactStore) -> None:  # type: ignore[no-untyped-def]
    declared = declare(SUMS, Host(tmp_path / "host"))
    image = image_build(declared, cache=tmp_path / "cache", store=store)
    other = ArtifactStore(f"file://{tmp_path}/other")

    again = image_build(declared, cache=tmp_path / "cache", store=other)

    assert again == image
    assert other.exists(image.archive)
    assert other.get_json(other.ref_get("images/small") or "")["digest"] == image.digest


def test_versions_form_a_chain_and_each_can_still_be_had(  # type: ignore[no-untyped-def]
    tmp_path: Path, declare, store: ArtifactStore
) -> None:
    host = Host(tmp_path / "host")
    first = image_build(declare(SUMS, host), cache=tmp_path / "cache", store=store)
    second = image_build(declare(SUMS + 'leave_out = ["lib/adds.py"]'), cache=tmp_path / "cache", store=store)

    latest = store.get_json(store.ref_get("images/small") or "")
    assert latest["digest"] == second.digest != first.digest
    assert store.get_json(latest["previous"])["digest"] == first.digest
    assert image_build(declare(SUMS), cache=tmp_path / "third", store=store).digest == first.digest


def test_many_at_once_build_one_image(tmp_path: Path, declare, store: ArtifactStore) -> None:  # type: ignore[no-untyped-def]
    declared = declare(SUMS, Host(tmp_path / "host"))
    builds: list[int] = []

    def counted(asked: ImageList) -> object:
        builds.append(1)
        return image_files(asked)

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(4) as threads:
        patch.setattr(images, "image_files", counted)
        made = list(
            threads.map(lambda _: image_build(declared, cache=tmp_path / "cache", store=store), range(4))
        )

    assert builds == [1]
    assert len(set(made)) == 1


def test_a_build_that_breaks_off_leaves_nothing_that_passes_for_an_image(  # type: ignore[no-untyped-def]
    tmp_path: Path, declare, store: ArtifactStore
) -> None:
    declared = declare(SUMS, Host(tmp_path / "host"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(images, "precompile", _break)
        with pytest.raises(SandboxUnavailable, match="No space left"):
            image_build(declared, cache=tmp_path / "cache", store=store)

    assert [path.name for path in (tmp_path / "cache").iterdir() if path.is_dir()] == []
    image = image_build(declared, cache=tmp_path / "cache", store=store)
    assert (image.root / "lib" / "adds.py").is_file()


def test_a_cache_from_which_nothing_may_be_run_is_refused(  # type: ignore[no-untyped-def]
    tmp_path: Path, declare, store: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = declare(SUMS, Host(tmp_path / "host"))
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=os.ST_NOEXEC))

    with pytest.raises(SandboxUnavailable, match="noexec") as refused:
        image_build(declared, cache=tmp_path / "cache", store=store)

    assert "FLYWHEEL_DATA" in refused.value.fix


def test_a_folder_that_was_removed_is_filled_again(tmp_path: Path, declare, store: ArtifactStore) -> None:  # type: ignore[no-untyped-def]
    declared = declare(SUMS, Host(tmp_path / "host"))
    image = image_build(declared, cache=tmp_path / "cache", store=store)
    shutil.rmtree(image.root)

    assert image_build(declared, cache=tmp_path / "cache", store=store) == image
    assert image.root.is_dir()


@pytest.mark.parametrize("name", image_names())
def test_what_the_project_declares_is_what_it_locks(name: str) -> None:
    locked = {
        line.split(" ")[0].strip().lower().replace("_", "-")
        for file in ("run.txt", "hashed.txt")
        for line in (ROOT / "requirements" / file).read_text().splitlines()
    }

    assert set(image_list(name).packages) <= locked


def test_the_project_has_the_images_that_its_packs_name() -> None:
    assert {"python", "lint", "modelling", "reasoning"} <= set(image_names())


def test_ruff_runs_from_its_image(tmp_path: Path, store: ArtifactStore) -> None:
    image: Image = image_build(image_list("lint"), cache=tmp_path / "cache", store=store)

    said = subprocess.run([image.root / "bin" / "ruff", "--version"], env={}, capture_output=True, text=True)

    assert said.stdout == f"ruff {importlib.metadata.version('ruff')}\n"


def test_an_image_for_another_interpreter_is_another_image(monkeypatch: pytest.MonkeyPatch) -> None:
    here = image_list("lint").key
    monkeypatch.setattr(lists, "abi", lambda: "cpython-399-riscv64-linux")

    assert image_list("lint").key != here


def _must_not_build(declared: ImageList) -> None:
    raise AssertionError(f"{declared.name} was built again")


def _break(lib: Path, installed: Path) -> None:
    raise OSError(28, "No space left on device")
