import asyncio
from pathlib import Path
from typing import Any

import pytest

from artifacts import ArtifactStore
from domain.contracts import ChatMessage, EngineTarget, Sampling, TaskSpec, VerifierSpec
from tests.workers.engine_fake import FakeEngine
from workers.engine.client import EngineError
from workers.served_policy import ServedByAnother, ServedPolicy

TASK = TaskSpec(
    id="t",
    family="f",
    messages=(ChatMessage(role="user", content="6 * 7?"),),
    verifier=VerifierSpec(kind="exact"),
    reference="42",
)
SAMPLING = Sampling(temperature=1.0)


async def test_a_prompt_is_tokenized_once_for_all_samples() -> None:
    engine = FakeEngine()
    policy = ServedPolicy(engine, _target())

    prompts = await asyncio.gather(*(policy.prompt_ids(TASK) for _ in range(8)))

    assert len(set(prompts)) == 1
    assert engine.tokenized == 1


async def test_a_sample_that_gives_up_leaves_the_prompt_to_the_others() -> None:
    engine = FakeEngine()
    policy = ServedPolicy(engine, _target())
    impatient = asyncio.create_task(policy.prompt_ids(TASK))
    await asyncio.sleep(0)

    impatient.cancel()

    assert (await policy.prompt_ids(TASK))[0] == 1
    assert engine.tokenized == 1


async def test_a_prompt_that_could_not_be_had_is_asked_for_again() -> None:
    engine = FakeEngine()
    engine.failures = [EngineError(400, "no template", False)]
    policy = ServedPolicy(engine, _target())

    first = await asyncio.gather(*(policy.prompt_ids(TASK) for _ in range(3)), return_exceptions=True)

    assert all(isinstance(error, EngineError) for error in first)
    assert (await policy.prompt_ids(TASK))[0] == 1


async def test_what_all_turns_share_is_asked_once() -> None:
    engine = FakeEngine()
    policy = ServedPolicy(engine, _target())

    known = await asyncio.gather(*(policy.knows_tool_role(TASK) for _ in range(5)))
    stand_ins = await asyncio.gather(*(policy.stand_in_ids(TASK) for _ in range(5)))

    assert known == [True] * 5
    assert len(set(stand_ins)) == 1
    assert engine.tokenized == 3  # two tool messages to tell apart, one stand-in


async def test_a_request_answered_by_the_base_model_is_refused() -> None:
    """ms-swift#9855: a request meant for an adapter must not be served without it."""
    engine = FakeEngine(loaded=("base", "run-v3-a1"))
    engine.serves_as = "base"
    policy = ServedPolicy(engine, _target("run-v3-a1"))

    with pytest.raises(ServedByAnother, match="asked for model 'run-v3-a1', answered by 'base'"):
        await policy.complete((1, 2), max_tokens=4, sampling=SAMPLING, seed=1)


async def test_an_external_endpoint_may_name_the_version_behind_an_alias() -> None:
    engine = FakeEngine()
    engine.serves_as = "base-2026-11-01"

    reply = await ServedPolicy(engine, _target()).chat(TASK.messages, task=TASK, sampling=SAMPLING, seed=1)

    assert reply.model == "base-2026-11-01"


async def test_an_adapter_that_the_engine_lost_is_loaded_again_once(adapters: "Adapters") -> None:
    engine = FakeEngine()
    policy = ServedPolicy(engine, _target("run-v3-a1", adapters.digest), store=adapters.store)

    await asyncio.gather(*(_complete(policy) for _ in range(5)))

    assert engine.loads == [("run-v3-a1", str(adapters.root / "run-v3-a1"))]
    assert (adapters.root / "run-v3-a1" / "adapter_config.json").read_text() == "{}"


async def test_an_adapter_that_is_lost_again_is_an_error(adapters: "Adapters") -> None:
    engine = FakeEngine()
    policy = ServedPolicy(engine, _target("run-v3-a1", adapters.digest), store=adapters.store)
    await _complete(policy)
    engine.loaded.remove("run-v3-a1")

    with pytest.raises(EngineError, match="does not exist"):
        await _complete(policy)


async def test_another_worker_that_loads_the_same_adapter_first_does_no_harm(adapters: "Adapters") -> None:
    engine = FakeEngine()
    policy = ServedPolicy(engine, _target("run-v3-a1", adapters.digest), store=adapters.store)
    engine.failures = [EngineError(404, "The model `run-v3-a1` does not exist.", False)]
    engine.loaded.append("run-v3-a1")

    await _complete(policy)

    assert engine.loads == []


async def test_an_unknown_model_without_an_adapter_is_refused() -> None:
    with pytest.raises(EngineError, match="does not exist"):
        await _complete(ServedPolicy(FakeEngine(), _target("nobody")))


@pytest.mark.parametrize("name", ["../escape", "a/b", "", ".hidden"])
async def test_an_adapter_name_cannot_lead_out_of_its_folder(adapters: "Adapters", name: str) -> None:
    policy = ServedPolicy(FakeEngine(), _target(name, adapters.digest), store=adapters.store)

    with pytest.raises(EngineError, match="no adapter name"):
        await _complete(policy)


async def test_a_failure_that_passes_is_tried_again() -> None:
    engine = FakeEngine()
    engine.failures = [EngineError(503, "busy", True), EngineError(0, "gone", True)]

    await _complete(ServedPolicy(engine, _target(), pauses_s=(0.0, 0.0)))

    assert len(engine.prompts) == 1


async def test_a_failure_that_stays_is_raised() -> None:
    engine = FakeEngine()
    engine.failures = [EngineError(503, "busy", True)] * 3

    with pytest.raises(EngineError, match="busy"):
        await _complete(ServedPolicy(engine, _target(), pauses_s=(0.0, 0.0)))


async def test_a_refusal_is_not_tried_again() -> None:
    engine = FakeEngine()
    engine.failures = [EngineError(400, "too long", False)]

    with pytest.raises(EngineError, match="too long"):
        await _complete(ServedPolicy(engine, _target(), pauses_s=(0.0, 0.0)))
    assert engine.prompts == []


async def test_retired_adapters_leave_engine_and_disk(adapters: "Adapters") -> None:
    engine = FakeEngine(loaded=("base", "run-v1-a1", "run-v2-a1"))
    adapters.store.materialize(adapters.digest, adapters.root / "run-v1-a1")

    await ServedPolicy(engine, _target(), store=adapters.store).retire(["run-v1-a1", "run-v0-a1"])

    assert engine.loaded == ["base", "run-v2-a1"]
    assert not (adapters.root / "run-v1-a1").exists()


class Adapters:
    def __init__(self, folder: Path) -> None:
        self.root = folder / "adapters"
        self.store = ArtifactStore(f"file://{folder}/artifacts")
        source = folder / "source"
        source.mkdir()
        (source / "adapter_config.json").write_text("{}")
        self.digest = self.store.put_tree(source)


@pytest.fixture
def adapters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Adapters:
    monkeypatch.setenv("FLYWHEEL_ADAPTERS", str(tmp_path / "adapters"))
    return Adapters(tmp_path)


def _target(model: str = "base", digest: str = "") -> EngineTarget:
    return EngineTarget(base_url="http://engine", model=model, adapter_digest=digest)


async def _complete(policy: ServedPolicy) -> None:
    await policy.complete((1, 2), max_tokens=4, sampling=SAMPLING, seed=1)


async def test_tools_that_are_refused_either_way_do_not_change_how_other_tasks_are_asked() -> None:
    class Refusing(FakeEngine):
        def __init__(self) -> None:
            super().__init__()
            self.native: list[bool] = []

        async def chat(self, **request: Any) -> Any:
            self.native.append(request["native_tools"])
            if request["tools"][0]["function"]["name"] == "broken":
                raise EngineError(400, "Invalid schema for tools[0]", False)
            return await super().chat(**request)

    def task(name: str) -> TaskSpec:
        return TASK.model_copy(update={"tools": ({"type": "function", "function": {"name": name}},)})

    engine = Refusing()
    target = _target().model_copy(update={"native_tools": True, "protocol": "chat"})
    policy = ServedPolicy(engine, target)  # type: ignore[arg-type]

    with pytest.raises(EngineError):
        await policy.chat(TASK.messages, task=task("broken"), sampling=SAMPLING, seed=1)
    await policy.chat(TASK.messages, task=task("sound"), sampling=SAMPLING, seed=1)

    assert engine.native == [True, False, True]
