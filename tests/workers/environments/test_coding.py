"""The coding loop, with a sandbox that only remembers."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.workers.environments.conftest import call, task_in
from tests.workers.environments.sandbox_fake import FakeSandbox, said
from workers.environments import Answer, EnvironmentBroken, TaskRefused
from workers.environments.coding import Coding
from workers.environments.turns import Turns
from workers.sandbox.protocol import ExecResult, Sandbox, SandboxSpec, SandboxUnavailable, Snapshot

Fake = Callable[..., FakeSandbox]
FILES = {"calc.py": "def add(a, b):\n    return a - b\n", "test_calc.py": "import calc\n"}


@pytest.fixture(autouse=True)
def _artifacts(store: Any) -> None:
    """Snapshots go to the test's own store."""


async def test_a_replacement_is_a_change_with_a_diff_and_a_snapshot(fake: Fake) -> None:
    environment = await _started(fake())

    await environment.act(Answer(call("replace_in_file", path="calc.py", old="a - b", new="a + b")))

    step = environment.sandbox_log()
    assert step is not None
    (change,) = step.changes
    assert (change.path, change.change) == ("calc.py", "modified")
    assert "+    return a + b" in change.diff
    assert step.snapshot
    assert (await environment.evidence())["workspace"]["files"]["calc.py"].endswith("a + b\n")


async def test_a_failing_run_comes_back_as_feedback(fake: Fake) -> None:
    sandbox = fake(lambda argv, files: said("AssertionError: -1 != 3", exit_code=1))
    environment = await _started(sandbox, run="python -m unittest")
    environment.observe()

    over = await environment.act(Answer(call("run")))

    (message,) = environment.observe()
    assert not over
    assert sandbox.ran == [("python", "-m", "unittest")]
    assert message.content == "[exit code 1]\nAssertionError: -1 != 3"


async def test_submitting_ends_the_episode_with_the_patch_as_answer(fake: Fake) -> None:
    environment = await _started(fake())
    await environment.act(Answer(call("write_file", path="new.py", content="x = 1\n")))

    over = await environment.act(Answer(call("submit")))
    await environment.evidence()

    assert over
    assert environment.answer_text() == "--- a/new.py\n+++ b/new.py\n@@ -0,0 +1 @@\n+x = 1\n"


async def test_doing_nothing_leaves_an_empty_answer(fake: Fake) -> None:
    environment = await _started(fake())

    await environment.act(Answer(call("submit")))
    await environment.evidence()

    assert environment.answer_text() == ""


async def test_a_changed_protected_file_is_named(fake: Fake) -> None:
    environment = await _started(fake(), protected=["test_calc.py", "calc.py"])

    await environment.act(Answer(call("write_file", path="test_calc.py", content="pass\n")))

    assert (await environment.evidence())["workspace"]["changed"] == ["test_calc.py"]


async def test_a_protected_file_that_a_program_deleted_is_named(fake: Fake) -> None:
    def delete(argv: Sequence[str], files: dict[str, bytes]) -> ExecResult:
        del files["test_calc.py"]
        return said("")

    environment = await _started(fake(delete), protected=["test_calc.py"], run="python x.py")

    await environment.act(Answer(call("run")))

    step = environment.sandbox_log()
    assert step is not None
    assert [change.change for change in step.changes] == ["removed"]
    assert (await environment.evidence())["workspace"]["changed"] == ["test_calc.py"]


@pytest.mark.parametrize(
    ("said_by_model", "why"),
    [
        (call("read_file", path="gone.py"), "there is no file 'gone.py'"),
        (call("read_file", path="../secret"), "there is no file"),
        (call("write_file", path="/etc/passwd", content=""), "leaves the workspace"),
        (call("replace_in_file", path="calc.py", old="nothing", new=""), "stands 0 times"),
        (call("run", command="python a.py && rm b"), "there is no shell"),
        (call("run", command="echo 'open"), "cannot be read"),
        (call("run"), "say which command"),
    ],
)
async def test_what_cannot_be_done_is_said_and_costs_a_turn(fake: Fake, said_by_model: str, why: str) -> None:
    environment = await _started(fake())
    environment.observe()

    over = await environment.act(Answer(said_by_model))

    (message,) = environment.observe()
    step = environment.sandbox_log()
    assert not over
    assert why in str(message.content)
    assert step is not None
    assert step.status == "refused"


async def test_words_without_a_call_are_no_answer_here(fake: Fake) -> None:
    environment = await _started(fake())

    over = await environment.act(Answer("I have fixed it."))

    step = environment.sandbox_log()
    assert not over
    assert step is not None
    assert step.status == "bad_action"


async def test_a_sandbox_that_dies_after_code_ran_is_the_models_doing(fake: Fake) -> None:
    sandbox = fake()
    environment = await _started(sandbox, run="python boom.py")
    sandbox.dies = "after"

    over = await environment.act(Answer(call("run")))

    assert over
    assert (await environment.evidence())["workspace"]["status"] == "died"


async def test_a_sandbox_that_dies_before_any_code_is_the_hosts_doing(fake: Fake) -> None:
    sandbox = fake()
    environment = await _started(sandbox)
    sandbox.dies = "before"

    with pytest.raises(EnvironmentBroken):
        await environment.act(Answer(call("list_files")))


async def test_a_step_that_the_host_failed_is_done_again_from_its_snapshot(store: Any) -> None:
    """The edit before it is there again, and the model notices nothing."""
    sandboxes: list[FakeSandbox] = []

    async def opened(spec: SandboxSpec, base: Snapshot | None) -> Any:
        sandboxes.append(FakeSandbox(store, lambda argv, files: said(files["calc.py"].decode()), base))
        return sandboxes[-1]

    environment = Turns(Coding(opened))
    await environment.reset(task_in("coding", files=FILES, run="python calc.py"))
    await environment.act(Answer(call("replace_in_file", path="calc.py", old="a - b", new="a + b")))
    environment.observe()
    sandboxes[0].program = lambda argv, files: ExecResult("infra_error", detail="no pids")

    over = await environment.act(Answer(call("run")))

    (message,) = environment.observe()
    assert not over
    assert "return a + b" in str(message.content)
    assert [sandbox.closed for sandbox in sandboxes] == [1, 0]


async def test_a_program_that_never_started_is_the_hosts_doing(fake: Fake) -> None:
    environment = await _started(fake(lambda argv, files: ExecResult("infra_error", detail="no pids")))

    with pytest.raises(EnvironmentBroken, match="no pids"):
        await environment.act(Answer(call("run", command="python x.py")))


async def test_no_sandbox_is_the_hosts_doing() -> None:
    async def none(spec: SandboxSpec, base: Snapshot | None) -> Sandbox:
        raise SandboxUnavailable("No user namespaces.", "Allow them.")

    with pytest.raises(EnvironmentBroken, match="No user namespaces"):
        await Turns(Coding(none)).reset(task_in("coding", files=FILES))


async def test_start_files_outside_the_workspace_are_refused(fake: Fake) -> None:
    sandbox = fake()

    with pytest.raises(TaskRefused):
        await _started(sandbox, files={"../x": "1"})

    assert sandbox.closed == 1


async def test_a_sandbox_is_given_back(fake: Fake) -> None:
    sandbox = fake()
    environment = await _started(sandbox)

    await environment.close()
    await environment.close()

    assert sandbox.closed == 1


async def test_binary_files_are_named_and_not_read(fake: Fake) -> None:
    sandbox = fake()
    environment = await _started(sandbox)
    sandbox.kept["image.bin"] = b"\xff\xfe\x00"

    workspace = (await environment.evidence())["workspace"]

    assert workspace["left_out"] == ["image.bin"]
    assert set(workspace["files"]) == set(FILES)


async def test_rubbish_does_not_crowd_out_the_files_that_count(fake: Fake) -> None:
    sandbox = fake()
    environment = await _started(sandbox)
    sandbox.kept |= {f"a{n:04}.txt": b"x" * 200_000 for n in range(20)} | {"a.log": b"x" * 300_000}

    workspace = (await environment.evidence())["workspace"]

    assert set(FILES) <= set(workspace["files"])
    assert "a.log" in workspace["left_out"]


async def test_long_output_is_cut_in_the_middle(fake: Fake) -> None:
    environment = await _started(
        fake(lambda argv, files: said("a" * 5000 + "END", exit_code=1)), feedback_chars=100
    )
    environment.observe()

    await environment.act(Answer(call("run", command="python x.py")))

    (message,) = environment.observe()
    assert len(str(message.content)) < 200
    assert str(message.content).endswith("END")


async def _started(sandbox: FakeSandbox, **params: Any) -> Turns:
    async def opened(spec: SandboxSpec, base: Snapshot | None) -> Any:
        return sandbox

    environment = Turns(Coding(opened))
    await environment.reset(task_in("coding", **{"files": FILES, **params}))
    return environment
