"""The workspace from outside: what is put is there, what is got is that, and nothing leads out."""

import asyncio
import hashlib
import io
import tarfile
import zipfile

import pytest

from tests.workers.sandbox.conformance.conftest import SPEC, py
from tests.workers.sandbox.programs import SMALL
from workers.sandbox.protocol import MIB, UnsafePath
from workers.sandbox.worker_pool import WorkerPool

OUTSIDE = ["../planted", "/etc/planted", "a/../../planted", "", ".", "..", "a//b", "./a", "a/", "a\0b"]


async def test_what_was_put_can_be_read_and_got(pool: WorkerPool) -> None:
    files = {"a.txt": b"1", "deep/er/b.bin": bytes(range(256)) * 4000, "empty": b"", "caf\u00e9 \u2028": b"x"}

    async with pool.acquire(SPEC) as box:
        await box.put(files)
        inside = await py(
            box, "import os; print(len(open('deep/er/b.bin', 'rb').read()), sorted(os.listdir('.')))"
        )
        got = {path: await box.get(path, max_bytes=2 * MIB) for path in files}

    assert got == files
    names = sorted(path.partition("/")[0] for path in files)
    assert inside.stdout.text == f"1024000 {names}\n"


async def test_putting_again_replaces(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        await box.put({"a": b"a longer first content"})
        await box.put({"a": b"short"})

        assert await box.get("a") == b"short"


async def test_programs_can_change_what_was_put(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        await box.put({"folder/a": b"1"})
        result = await py(
            box, "open('folder/a', 'a').write('2'); __import__('os').rename('folder/a', 'folder/b')"
        )

        assert result.status == "ok"
        assert await box.get("folder/b") == b"12"


@pytest.mark.parametrize("path", OUTSIDE)
async def test_a_path_that_leaves_is_refused_and_nothing_is_written(pool: WorkerPool, path: str) -> None:
    async with pool.acquire(SPEC) as box:
        with pytest.raises(UnsafePath):
            await box.put({"innocent": b"x", path: b"x"})
        with pytest.raises(UnsafePath):
            await box.get(path)

        assert await box.list() == ()


async def test_what_is_no_file_or_too_large_is_not_got(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        await box.put({"folder/a": b"123"})
        await py(box, "import os; os.mkfifo('pipe')")

        with pytest.raises(FileNotFoundError):
            await box.get("absent")
        with pytest.raises(ValueError, match="larger than 2 bytes"):
            await box.get("folder/a", max_bytes=2)
        for path in ("folder", "pipe"):
            with pytest.raises(ValueError, match=path):
                await box.get(path)


async def test_more_than_the_workspace_holds_is_refused(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        with pytest.raises(ValueError, match=r"larger than the workspace|No space left"):
            await box.put({"big": bytes(SMALL.workspace_bytes + MIB)})

        assert (await py(box, "print(1)")).stdout.text == "1\n"


async def test_the_list_names_every_entry_with_its_digest(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        await box.put({"b": b"12", "a/c": b"3"})
        await py(box, "import os; os.symlink('b', 'link'); os.symlink('/etc', 'out'); os.mkfifo('pipe')")
        listed = await box.list()

    shown = [(info.path, info.kind, info.bytes, info.digest) for info in listed if info.kind != "link"]
    assert shown == [
        ("a", "folder", 0, ""),
        ("a/c", "file", 1, hashlib.sha256(b"3").hexdigest()),
        ("b", "file", 2, hashlib.sha256(b"12").hexdigest()),
    ]
    assert [info.path for info in listed if info.kind == "link"] == ["link", "out"]


async def test_a_write_through_a_memory_map_changes_the_digest(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        await box.put({"a": b"A" * 8192})
        await asyncio.sleep(0.1)
        await box.list()
        # Read first: the page is then mapped for writing too, and no time stamp moves.
        await py(
            box,
            """
            import mmap
            with open('a', 'r+b') as stream, mmap.mmap(stream.fileno(), 0) as view:
                view[0]
                view[:4] = b'EVIL'
            """,
        )
        (info,) = await box.list()

    assert info.digest == hashlib.sha256(b"EVIL" + b"A" * 8188).hexdigest()


async def test_many_entries_and_strange_names_are_listed_whole(pool: WorkerPool) -> None:
    files = {f"d{n % 7}/{n}": b"%d" % n for n in range(450)} | {"new\nline": b"", '"[{': b"", "é" * 100: b""}
    async with pool.acquire(SPEC) as box:
        await box.put(files)
        first = await box.list()
        await asyncio.sleep(0.1)
        known = await box.list()
        await py(box, "open('d3/3', 'r+b').write(b'x')")
        after = await box.list()

    digests = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
    assert {info.path: info.digest for info in first if info.kind == "file"} == digests
    assert known == first
    digests["d3/3"] = hashlib.sha256(b"x").hexdigest()
    assert {info.path: info.digest for info in after if info.kind == "file"} == digests


async def test_a_digest_is_that_of_the_content_now(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        await box.put({"a": b"1"})
        await box.list()
        # The same size, and the time stamps set back: only the content differs.
        await py(
            box,
            """
            import os
            before = os.stat('a')
            with open('a', 'r+b') as stream: stream.write(b'2')
            os.utime('a', ns=(before.st_atime_ns, before.st_mtime_ns))
            """,
        )
        (info,) = await box.list()

    assert info.digest == hashlib.sha256(b"2").hexdigest()


def archive(kind: str, entries: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as pack:
            for name, content in entries.items():
                pack.writestr(name, content)
        return buffer.getvalue()
    with tarfile.open(fileobj=buffer, mode=f"w:{kind}") as tar:
        for name, content in entries.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o755 if name.endswith(".sh") else 0o644
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["", "gz", "xz", "zip"])
async def test_an_archive_is_unpacked(pool: WorkerPool, kind: str) -> None:
    async with pool.acquire(SPEC) as box:
        await box.put_archive(archive(kind, {"src/a.py": b"print('a')", "./b": b"2"}))

        assert (await box.exec(["python", "src/a.py"])).stdout.text == "a\n"
        assert await box.get("b") == b"2"


async def test_an_archive_keeps_modes_and_links_that_stay_inside(pool: WorkerPool) -> None:
    buffer = io.BytesIO(archive("", {"run.sh": b"#!/bin/sh\necho ran\n"}))
    with tarfile.open(fileobj=buffer, mode="a") as tar:
        link = tarfile.TarInfo("bin/run")
        link.type, link.linkname = tarfile.SYMTYPE, "../run.sh"
        tar.addfile(link)

    async with pool.acquire(SPEC) as box:
        await box.put_archive(buffer.getvalue())

        assert (await box.exec(["bin/run"])).stdout.text == "ran\n"


@pytest.mark.parametrize("data", [b"", b"no archive", b"PK\x03\x04 cut short", b"\x1f\x8b cut short"])
async def test_what_is_no_archive_is_said(pool: WorkerPool, data: bytes) -> None:
    async with pool.acquire(SPEC) as box:
        with pytest.raises(ValueError, match="archive"):
            await box.put_archive(data)

        assert await box.list() == ()
