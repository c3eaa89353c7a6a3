"""A suite, a version to ask, engines that are said to be up, and what a worker would report."""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from apps.core.models import Project, WorkUnit
from apps.core.permissions import Actor
from apps.core.units import unit_report, units_pump
from apps.evals import services
from apps.evals.models import Run, SuiteVersion
from apps.versions import services as versions
from apps.versions.models import BaseModel, Deployment, ModelVersion
from artifacts import ArtifactStore
from domain.contracts import ChatMessage, EpisodeResult, RunEvalBatch, TaskSpec, Verdict, VerifierSpec
from tests.endpoints import Handler, Served


def make_task(number: int, **changes: Any) -> TaskSpec:
    """A task that nobody's data is in: ``case-3`` asks for 3 + 1."""
    fields: dict[str, Any] = {
        "id": f"case-{number}",
        "family": "sums",
        "messages": (ChatMessage(role="user", content=f"What is {number} plus 1?"),),
        "verifier": VerifierSpec(kind="numeric"),
        "reference": number + 1,
    }
    return TaskSpec(**{**fields, **changes})


def episode(task_id: str, state: str = "passed", sample: int = 0, **fields: Any) -> EpisodeResult:
    scored: dict[str, Any] = {"passed": {"score": 1.0}, "failed": {"score": 0.0}}.get(state, {})
    verdict = Verdict(state=state, reasons=("said",), **scored) if state != "error" else None  # type: ignore[arg-type]
    return EpisodeResult(
        task_id=task_id,
        sample=sample,
        state=state,  # type: ignore[arg-type]
        answer="" if state == "error" else f"answer {sample}",
        verdict=verdict,
        **{**scored, **fields},
    )


@pytest.fixture
def base(project: Project, actor: Actor) -> BaseModel:
    made = versions.base_model_register(
        project=project, name="pocket", engine_name="pocket", path="/models/pocket", by=actor
    )
    Deployment.objects.engines().update(healthy=True, loaded=["pocket"])
    return made


@pytest.fixture
def version(base: BaseModel) -> ModelVersion:
    """1.0, served by both engines."""
    return base.versions.get(minor=0)


@pytest.fixture
def candidate(version: ModelVersion, store: ArtifactStore, actor: Actor, tmp_path: Path) -> ModelVersion:
    """1.1, with an adapter that both engines hold; not in service."""
    folder = tmp_path / "adapter"
    folder.mkdir()
    (folder / "adapter_config.json").write_text("{}")
    made = versions.version_register(
        project=version.project,
        base=version.base,
        adapter_name="a1",
        adapter_digest=store.put_tree(folder),
        origin="training.run:1",
        by=actor,
    )
    version.project.deployments.engines().update(loaded=["pocket", "a1"])
    return made


@pytest.fixture
def endpoint(project: Project, actor: Actor) -> Deployment:
    return versions.deployment_register_external(
        project=project,
        name="frontier",
        base_url="http://127.0.0.1:9",
        model="big-1",
        api_key="sk-1",
        by=actor,
    )


@pytest.fixture
def suite_version(store: ArtifactStore, project: Project, actor: Actor) -> SuiteVersion:
    """Four cases."""
    suite = services.suite_create(project=project, name="Sums", by=actor)
    return services.suite_version_create(suite=suite, tasks=[make_task(n) for n in range(4)], by=actor)


@pytest.fixture
def start(suite_version: SuiteVersion, version: ModelVersion, actor: Actor) -> Callable[..., Run]:
    """Start a run of ``suite_version`` against 1.0 standard; other arguments replace these."""

    def make(**changes: Any) -> Run:
        fields: dict[str, Any] = {"suite_version": suite_version, "version": version, "by": actor}
        if changes.get("deployment") is not None:
            fields["version"] = None
        return services.run_start(**{**fields, **changes})

    return make


@pytest.fixture
def finish(store: ArtifactStore) -> Callable[..., None]:
    """Play the worker for a run: send what waits and report it. ``states`` gives the state of each
    case id ("passed" otherwise), or a list of one state per sample."""

    def play(run: Run, states: dict[str, str | list[str]] | None = None, **fields: Any) -> None:
        mine = WorkUnit.objects.filter(owner=run.lineage_key)
        while mine.open().exists():
            units_pump()
            for unit in mine.filter(state="sent"):
                unit_report(report=report_of(unit, states or {}, store, **fields))

    return play


def report_of(
    unit: WorkUnit, states: dict[str, str | list[str]], store: ArtifactStore, **fields: Any
) -> dict[str, Any]:
    """A worker's ``UnitFinished`` for an eval batch."""
    message = RunEvalBatch.model_validate(unit.payload)
    lines = list(store.iter_jsonl(message.tasks_digest))
    rows = []
    for index in message.indexes:
        told = states.get(lines[index]["id"], "passed")
        for sample in range(message.sampling.samples):
            state = told if isinstance(told, str) else told[sample]
            rows.append(episode(lines[index]["id"], state, sample, **fields))
    return finished_report(unit, rows, store)


def finished_report(unit: WorkUnit, rows: Sequence[EpisodeResult], store: ArtifactStore) -> dict[str, Any]:
    digest = store.put_jsonl(row.model_dump(mode="json") for row in rows)
    result = {"results_digest": digest, "counts": {"done": len(rows)}, "pipeline": {}}
    return {"type": "UnitFinished", "unit_id": unit.pk, "attempt": unit.attempt, "result": result}


def first_tokens(prompt: str, shift: float = 0.0) -> dict[str, float]:
    """Five alternatives that depend on the prompt; ``shift`` makes another model of it."""
    seed = sum(map(ord, prompt))
    logits = [math.cos(seed * (token + 1)) + shift * math.sin(seed + token) for token in range(5)]
    total = math.log(sum(math.exp(logit) for logit in logits))
    return {f"t{token}": logit - total for token, logit in enumerate(logits)}


def _content(alternatives: dict[str, float], body: dict[str, Any]) -> dict[str, Any]:
    rows = sorted(({"token": t, "logprob": v} for t, v in alternatives.items()), key=lambda r: -r["logprob"])
    return {**rows[0], "top_logprobs": rows[: body["top_logprobs"]]}


class FakeModel(Served):
    """Speaks the part of an engine's HTTP API that probes and the long-context map use.

    ``answer`` maps a prompt to a text; a token is a word here. ``status`` other than 200 refuses;
    ``refuse`` maps a body to a status of its own. ``logprobs`` maps a prompt to the first token's
    alternatives; None shows none. ``headers`` are sent along.
    """

    def __init__(self) -> None:
        self.answer: Callable[[str], str] = lambda prompt: f"echo {prompt}"
        self.model, self.fingerprint, self.status, self.room = "big-1", "fp-1", 200, 120
        self.logprobs: Callable[[str], dict[str, float]] | None = first_tokens
        self.refuse: Callable[[dict[str, Any]], int | None] = lambda body: None
        self.headers: dict[str, str] = {}
        self.usage = True
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str] = []
        fake = self

        class Model(Handler):
            def do_POST(self) -> None:
                body = self.body()
                fake.keys.append(self.headers.get("Authorization", ""))
                prompt = body["messages"][0]["content"]
                count = len(prompt.split())
                status = fake.refuse(body) or fake.status
                if self.path == "/tokenize":
                    said: dict[str, Any] = {"count": count, "max_model_len": fake.room}
                else:
                    fake.asked.append(body)
                    choice: dict[str, Any] = {
                        "message": {"role": "assistant", "content": fake.answer(prompt)}
                    }
                    if body.get("logprobs") and fake.logprobs is not None:
                        choice["logprobs"] = {"content": [_content(fake.logprobs(prompt), body)]}
                    said = {
                        "model": fake.model,
                        "system_fingerprint": fake.fingerprint,
                        "choices": [choice],
                        "usage": {"prompt_tokens": count, "completion_tokens": 2} if fake.usage else None,
                    }
                self.answer(status, said, **fake.headers)

        super().__init__(Model)


@pytest.fixture
def fake_model(base: BaseModel) -> Iterator[FakeModel]:
    """The standard engine of the project, really answering."""
    fake = FakeModel()
    Deployment.objects.filter(edition_kind="standard").update(base_url=fake.url)
    yield fake
    fake.stop()


def text(answer: Any) -> str:
    """The page in one line, every space a plain one."""
    return " ".join(answer.content.decode().replace("&nbsp;", " ").split())
