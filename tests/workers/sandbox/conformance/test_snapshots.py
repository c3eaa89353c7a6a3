"""Reset, snapshot, restore, fork, replay: the workspace can be had again exactly as it was."""

import pytest

from artifacts import ArtifactStore
from domain.contracts.trajectory import SandboxStep
from tests.workers.sandbox.conformance.conftest import SPEC, py
from workers.sandbox.manifest import SnapshotBroken
from workers.sandbox.protocol import Sandbox, Snapshot
from workers.sandbox.replay import PUT, StepLog, fast_forward, output_digest, replay_step
from workers.sandbox.worker_pool import WorkerPool

MESS = """
import os, shutil
os.remove('a'); open('b', 'w').write('changed'); os.chmod('c', 0o755)
shutil.rmtree('folder'); open('folder', 'w').write('a file now')
os.symlink('/etc/shadow', 'out'); os.mkdir('empty'); os.mkfifo('pipe')
"""
FILES = {"a": b"1", "b": b"2", "c": b"3", "folder/d": b"4"}


@pytest.fixture(autouse=True)
def _own_store(store: ArtifactStore) -> None:
    """Snapshots go to a store of the test's own."""


async def state(box: Sandbox) -> list[tuple[str, str, str]]:
    return [(info.path, info.kind, info.digest) for info in await box.list()]


async def test_reset_brings_back_the_empty_workspace(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        await box.put(FILES)
        await py(box, MESS)
        await box.reset()

        assert await box.list() == ()
        assert (await py(box, "open('new', 'w')")).status == "ok"


async def test_reset_brings_back_the_snapshot_it_was_made_from(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        await box.put(FILES)
        base = await box.snapshot()
        before = await state(box)
    async with pool.acquire(SPEC, base=base) as fork:
        await py(fork, MESS)
        await fork.reset()

        assert await state(fork) == before
        assert (await fork.snapshot()).id == base.id


async def test_reset_also_clears_the_other_folders(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        await py(box, "open('/tmp/left', 'w'); open('/dev/shm/left', 'w')")
        await box.reset()
        result = await py(box, "import os; print(os.listdir('/tmp'), os.listdir('/dev/shm'))")

    assert result.stdout.text == "[] []\n"


async def test_a_snapshot_is_restored_after_any_mess(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        await box.put(FILES)
        before = await state(box)
        snapshot = await box.snapshot()
        await py(box, MESS)
        mess = await box.snapshot()
        await box.restore(snapshot)

        assert await state(box) == before
        assert {path: await box.get(path) for path in FILES} == FILES
        assert (await box.snapshot()).id == snapshot.id != mess.id


async def test_a_snapshot_keeps_modes_links_and_empty_folders(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        await py(
            box,
            """
            import os
            open('run', 'w').write('#!/bin/sh\\necho ran'); os.chmod('run', 0o750)
            os.symlink('run', 'link'); os.mkdir('empty'); os.chmod('empty', 0o700)
            """,
        )
        snapshot = await box.snapshot()
    async with pool.acquire(SPEC, base=snapshot) as fork:
        code = "import os; print([oct(os.stat(p).st_mode & 0o777) for p in ('run', 'empty', 'link')])"
        looked, ran = await py(fork, code), await fork.exec(["./link"])

    assert looked.stdout.text == "['0o750', '0o700', '0o750']\n"
    assert ran.stdout.text == "ran\n"


async def test_forks_of_one_snapshot_do_not_touch_each_other(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        await box.put(FILES)
        base = await box.snapshot()
        async with pool.acquire(SPEC, base=base) as left, pool.acquire(SPEC, base=base) as right:
            await left.put({"a": b"left"})
            await right.put({"a": b"right"})

            assert [await each.get("a") for each in (box, left, right)] == [b"1", b"left", b"right"]


async def test_the_same_content_is_the_same_snapshot_in_another_sandbox(pool: WorkerPool) -> None:
    ids = []
    for order in (1, -1):
        async with pool.acquire(SPEC) as box:
            for path, content in list(FILES.items())[::order]:
                await box.put({path: content})
            ids.append((await box.snapshot()).id)

    assert ids[0] == ids[1]


async def test_a_snapshot_names_the_one_it_was_taken_after(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        await box.put({"a": b"1"})
        first = await box.snapshot()
        await box.put({"a": b"2"})
        second = await box.snapshot()

    assert second.parent == first.id


async def test_files_that_a_program_made_unreadable_are_in_the_snapshot_all_the_same(
    pool: WorkerPool,
) -> None:
    async with pool.acquire(SPEC) as box:
        await py(
            box, "import os; os.mkdir('d'); open('d/f', 'w').write('x'); os.chmod('d/f', 0); os.chmod('d', 0)"
        )
        snapshot = await box.snapshot()
        await box.reset()
        await box.restore(snapshot)
        result = await py(
            box, "import os; os.chmod('d', 0o700); os.chmod('d/f', 0o600); print(open('d/f').read())"
        )

    assert result.stdout.text == "x\n"


async def test_an_unknown_snapshot_is_refused(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        with pytest.raises(SnapshotBroken, match="no snapshot"):
            await box.restore(Snapshot("0" * 64))

        assert (await py(box, "print(1)")).stdout.text == "1\n"


async def recorded(box: Sandbox, code: str, seed: int = 0) -> SandboxStep:
    argv = ("python", "-c", code)
    result = await box.exec(argv, seed=seed)
    after = await box.snapshot()
    return SandboxStep(
        command=code,
        status=result.status,
        exit_code=result.exit_code,
        signal=result.signal,
        stdout=result.stdout.text,
        stderr=result.stderr.text,
        argv=argv,
        seed=seed,
        snapshot=after.id,
        output_digest=output_digest(result),
    )


async def test_a_failed_step_replays_with_the_same_end_output_and_workspace(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        await box.put(FILES)
        before = await box.snapshot()
        code = "print(hash('x'), open('a').read()); open('made', 'w').write('y'); raise SystemExit(7)"
        step = await recorded(box, code, seed=3)

    replayed = await replay_step(pool, before, step, spec=SPEC)

    assert step.exit_code == 7
    assert replayed.differences == ()
    assert replayed.step.snapshot == step.snapshot


async def test_a_replay_says_what_came_out_differently(pool: WorkerPool) -> None:
    async with pool.acquire(SPEC) as box:
        before = await box.snapshot()
        code = "import os; x = os.urandom(4).hex(); print('same'); print(x); open('drawn', 'w').write(x)"
        step = await recorded(box, code)

    replayed = await replay_step(pool, before, step.model_copy(update={"exit_code": 1}), spec=SPEC)

    assert replayed.differences[0] == "The exit code was 1, now it is 0."
    assert replayed.differences[1].startswith("stdout differs from line 2: ")
    assert replayed.differences[2] == "The workspace came out differently: drawn."
    assert [(change.path, change.change) for change in replayed.changes] == [("drawn", "modified")]


async def test_a_written_file_replays(pool: WorkerPool) -> None:
    import hashlib

    async with pool.acquire(SPEC) as box:
        before = await box.snapshot()
        await box.put({"a": b"text"})
        digest = hashlib.sha256(b"text").hexdigest()
        step = SandboxStep(
            command="write a", argv=(PUT, "a"), stdin_digest=digest, snapshot=(await box.snapshot()).id
        )

    assert (await replay_step(pool, before, step, spec=SPEC)).same


async def test_a_log_brings_a_fresh_sandbox_to_where_it_ends(pool: WorkerPool) -> None:
    log = StepLog("episode/1")
    async with pool.acquire(SPEC) as box:
        for number in range(4):
            step = await recorded(box, f"open('n', 'a').write('{number}'); print({number})")
            kept = step if number == 1 else step.model_copy(update={"snapshot": ""})
            log.append(kept)

    resumed, results = await fast_forward(pool, StepLog("episode/1").steps(), spec=SPEC)
    try:
        assert await resumed.get("n") == b"0123"
        assert [result.differences for result in results] == [(), ()]  # only what came after the snapshot
    finally:
        await resumed.close()
