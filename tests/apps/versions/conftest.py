"""A project with a base in service, engines that hold what they should, and a candidate."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from apps.core.models import Project
from apps.core.permissions import Actor
from apps.versions import services
from apps.versions.models import BaseModel, Deployment, EditionKind, ModelVersion, Release
from artifacts import ArtifactStore
from tests.apps.versions.traffic import load
from tests.endpoints import Handler, Served

PLAN = {
    "steps": [{"weight": 0.1, "min_units": 40}, {"weight": 0.5, "min_units": 40}],
    "margin": 0.2,
}


@pytest.fixture
def base(project: Project, actor: Actor) -> BaseModel:
    return services.base_model_register(
        project=project, name="pocket", engine_name="pocket", path="/models/pocket", by=actor
    )


@pytest.fixture
def control(base: BaseModel) -> ModelVersion:
    """1.0, in service."""
    return base.versions.get(minor=0)


@pytest.fixture
def engines(base: BaseModel) -> list[Deployment]:
    """Both engines up, holding the base only."""
    Deployment.objects.engines().update(healthy=True, loaded=["pocket"])
    return list(Deployment.objects.engines())


@pytest.fixture
def adapter(store: ArtifactStore, tmp_path: Path) -> Callable[[str], str]:
    """Store a small adapter folder and return its digest; other ``content``, another digest."""

    def make(content: str = "weights") -> str:
        folder = tmp_path / f"adapter-{content}"
        folder.mkdir(exist_ok=True)
        (folder / "adapter_config.json").write_text(json.dumps({"content": content}))
        return store.put_tree(folder)

    return make


@pytest.fixture
def register(
    project: Project, base: BaseModel, actor: Actor, adapter: Callable[[str], str]
) -> Callable[..., ModelVersion]:
    """Register a version with a fresh adapter, by default with a finished evaluation."""

    def make(name: str, *, evaluated: bool = True, loaded: bool = True) -> ModelVersion:
        version = services.version_register(
            project=project,
            base=base,
            adapter_name=name,
            adapter_digest=adapter(name),
            origin=f"training.run:{name}",
            origin_label=f"run {name}",
            by=actor,
        )
        if evaluated:
            services.evidence_record(
                version=version,
                kind="suite",
                source=f"evals.run:{name}",
                title="Held-out",
                sentence="71 % (64–77), n = 212.",
                verdict="passed",
            )
        if loaded:
            load(version)
        return version

    return make


@pytest.fixture
def candidate(engines: list[Deployment], register: Callable[..., ModelVersion]) -> ModelVersion:
    """1.1, evaluated and loaded everywhere."""
    return register("run1-v1")


@pytest.fixture
def release(candidate: ModelVersion, actor: Actor) -> Release:
    """Running at 10 %."""
    return services.release_start(candidate=candidate, plan=PLAN, reason="Better on invoices", by=actor)


class FakeEngine(Served):
    """Speaks the part of vLLM's HTTP API that loading adapters needs."""

    def __init__(self) -> None:
        self.models = ["pocket"]
        self.loads: list[dict[str, str]] = []
        self.refuse = False
        engine = self

        class Engine(Handler):
            def do_GET(self) -> None:
                models = {"data": [{"id": name} for name in engine.models]}
                self.answer(200, b"" if self.path == "/health" else models)

            def do_POST(self) -> None:
                asked = self.body()
                engine.loads.append(asked)
                if engine.refuse or asked["lora_name"] in engine.models:
                    self.answer(400, b"{}")
                    return
                engine.models.append(asked["lora_name"])
                self.answer(200, b"ok")

        super().__init__(Engine)


@pytest.fixture
def served(base: BaseModel, settings, tmp_path: Path) -> Iterator[dict[str, FakeEngine]]:  # type: ignore[no-untyped-def]
    """Two engines that really answer, named by the settings."""
    fakes = {kind: FakeEngine() for kind in (EditionKind.STANDARD, EditionKind.HIGH_SPEED)}
    settings.ENGINE_STANDARD_URL = fakes[EditionKind.STANDARD].url
    settings.ENGINE_HIGHSPEED_URL = fakes[EditionKind.HIGH_SPEED].url
    settings.ADAPTERS_DIR = tmp_path / "adapters"
    yield fakes
    for fake in fakes.values():
        fake.stop()
