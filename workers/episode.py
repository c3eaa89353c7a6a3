"""One episode: generate, act, observe, verify, reward. Evaluations and training run the same.

What goes wrong in the infrastructure is state ``error`` with reward None, never a failure of
the model; a program that dies after it started is one. The turns themselves are in ``play.py``.
"""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from domain.contracts import EpisodeResult, Flag, Sampling, TaskSpec, Trajectory, Verdict
from domain.rewards import episode_reward
from domain.steps import did_nothing, step_checks
from domain.suspicion import flags_of
from domain.verifiers import verify
from workers.collect.pictures import with_picture
from workers.engine.client import EngineError
from workers.environments import Environment, EnvironmentBroken, TaskRefused, with_tools
from workers.environments.messages import answer_text
from workers.evidence import Collector, broken, collect_evidence
from workers.play import Meters, Policy, TemplateRefused, Turn, TurnLate, play
from workers.played import Played
from workers.served_policy import ServedByAnother

# Share of the passes that the hidden verifier looks at while training and in evaluations.
HIDDEN_SHARE = 0.25
HIDDEN_DETECTOR = "hidden_verifier"


@dataclass(frozen=True)
class EpisodeJob:
    """What tells one episode of a batch from the others. ``seed`` is unique among them."""

    task: TaskSpec
    sample: int
    seed: int
    group: str = ""


@dataclass(frozen=True)
class Draft:
    """An episode that is over but not judged. ``error`` says what kept it from its end; ``broken`` that
    it was the environment, so that a fresh one is worth a try."""

    job: EpisodeJob
    played: Played = field(default_factory=Played)
    evidence: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    answer_text: str | None = None  # what the environment says is the answer
    error: str = ""
    broken: bool = False
    wall_s: float = 0.0


async def run_episode(
    task: TaskSpec,
    *,
    policy: Policy,
    sampling: Sampling,
    sample: int,
    seed: int,
    environment: Environment,
    collectors: Mapping[str, Collector],
    hidden_share: float = HIDDEN_SHARE,
) -> Trajectory:
    """Both stages of one episode in a row."""
    job = EpisodeJob(task=task, sample=sample, seed=seed, group=task.id)
    draft = await generate(job, policy=policy, sampling=sampling, environment=environment)
    return await judge(draft, collectors=collectors, hidden_share=hidden_share)


async def generate(
    job: EpisodeJob,
    *,
    policy: Policy,
    sampling: Sampling,
    environment: Environment,
    policy_version: int = 0,
    step_s: float | None = None,
    meters: Meters | None = None,
) -> Draft:
    """Turns of model and environment until the environment says that it is over. ``step_s`` bounds
    each turn's two parts; ``meters`` are those of the batch."""
    started = time.monotonic()
    played, error, broken_down = Played(), "", False
    evidence: Mapping[str, Mapping[str, Any]] = {}
    text: str | None = None
    try:
        task = with_tools(job.task)
        await environment.reset(task)
        turn = Turn(
            task=task,
            policy=policy,
            sampling=sampling,
            seed=job.seed,
            environment=environment,
            policy_version=policy_version,
            step_s=step_s,
            meters=meters or Meters(),
        )
        await play(turn, played)
        evidence, text = await environment.evidence(), environment.answer_text()
    except (EngineError, ServedByAnother, TemplateRefused, TurnLate) as failure:
        said = str(failure)
        error = (said if said.startswith("engine ") else f"engine: {said}")[:500]
        if isinstance(failure, EngineError):
            played.attempts += failure.attempts - 1
    except EnvironmentBroken as failure:
        error, broken_down = f"environment: {failure}"[:500], True
    except TaskRefused as failure:  # one unsound task must not end a batch of thousands
        error = f"task: {failure}"[:500]
    finally:
        await environment.close()
    return Draft(
        job=job,
        played=played,
        evidence=evidence,
        answer_text=text,
        error=error,
        broken=broken_down,
        wall_s=time.monotonic() - started,
    )


async def judge(
    draft: Draft, *, collectors: Mapping[str, Collector], hidden_share: float = HIDDEN_SHARE
) -> Trajectory:
    """Evidence, verdict, reward and flags of a finished draft. ``hidden_share`` of the passes, chosen
    by seed, are shown to the task's hidden verifier too."""
    if draft.error or draft.played.answer is None:
        return _trajectory(draft, state="error", error=draft.error or "no turn was played")
    started = time.monotonic()
    task, steps = draft.job.task, draft.played.steps
    text = answer_text(draft.played.answer) if draft.answer_text is None else draft.answer_text
    evidence = await collect_evidence(task, text, collectors, seen=draft.evidence)
    verdict = verify(task, text, evidence)
    if verdict.state == "unscored":
        failure = broken(evidence)
        state = "error" if failure else "unscored"
        wall_s = time.monotonic() - started
        return _trajectory(draft, state=state, verdict=verdict, error=failure, wall_s=wall_s)
    verdict = verdict.model_copy(update={"checks": (*verdict.checks, *step_checks(steps))})
    reward = episode_reward(verdict, no_op=did_nothing(text, steps))
    hidden = None
    if verdict.state == "passed" and in_hidden_sample(draft.job, hidden_share):
        hidden = await _hidden_verdict(task, text, collectors, draft.evidence)
    done = _trajectory(
        draft, state=verdict.state, verdict=verdict, wall_s=time.monotonic() - started
    ).model_copy(
        update={
            "reward": reward.value,
            "reward_terms": reward.terms,
            "hidden": hidden,
            "steps": with_picture(steps, evidence),
        }
    )
    return done.model_copy(update={"flags": (*flags_of(task, done), *_hidden_flags(done))})


def in_hidden_sample(job: EpisodeJob, share: float) -> bool:
    """Whether the hidden verifier looks at this episode if it passes; the same answer in every process."""
    if job.task.hidden is None:
        return False
    digest = hashlib.blake2b(f"hidden:{job.seed}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64


def lost(job: EpisodeJob, stage: str, *, deadline_s: float) -> Trajectory:
    """What remains of an episode that its deadline ended."""
    error = f"lost while {stage}: no result within {deadline_s:g} s"
    return _trajectory(Draft(job=job, wall_s=deadline_s), state="error", error=error)


def result_of(trajectory: Trajectory) -> EpisodeResult:
    """The part of a trajectory that an evaluation stores as a row; of several turns the answer is all
    that the model said, a line each."""
    verdict = trajectory.verdict
    return EpisodeResult(
        task_id=trajectory.task_id,
        sample=trajectory.sample,
        state=trajectory.state,
        score=verdict.score if verdict else None,
        answer="\n".join(step.action for step in trajectory.steps),
        verdict=verdict,
        flags=trajectory.flags,
        error=trajectory.error,
        prompt_tokens=trajectory.prompt_tokens,
        completion_tokens=trajectory.completion_tokens,
        ttft_ms=trajectory.ttft_ms,
        latency_ms=trajectory.latency_ms,
        per_token_ms=trajectory.per_token_ms,
        served_model=trajectory.served_model,
        attempts=trajectory.attempts,
        cached=trajectory.cached,
    )


async def _hidden_verdict(
    task: TaskSpec, text: str, collectors: Mapping[str, Collector], seen: Mapping[str, Mapping[str, Any]]
) -> Verdict:
    assert task.hidden is not None
    hidden = {"verifier": task.hidden.verifier, "reference": task.hidden.reference}
    stricter = task.model_copy(update=hidden)
    return verify(stricter, text, await collect_evidence(stricter, text, collectors, seen=seen))


def _hidden_flags(done: Trajectory) -> tuple[Flag, ...]:
    if done.hidden is None or done.hidden.state != "failed":
        return ()
    why = " ".join(done.hidden.reasons[:2])[:300]
    reason = f"Passed the task's verifier and failed the stricter hidden one. {why}".rstrip()
    return (Flag(detector=HIDDEN_DETECTOR, reason=reason, step=max(len(done.steps) - 1, 0)),)


def _trajectory(
    draft: Draft, *, state: str, verdict: Verdict | None = None, error: str = "", wall_s: float = 0.0
) -> Trajectory:
    return Trajectory(
        task_id=draft.job.task.id,
        family=draft.job.task.family,
        group=draft.job.group,
        sample=draft.job.sample,
        seed=draft.job.seed,
        prompt_ids=draft.played.prompt_ids,
        steps=tuple(draft.played.steps),
        state=state,
        verdict=verdict,
        error=error,
        wall_s=draft.wall_s + wall_s,
        prompt_tokens=draft.played.prompt_tokens,
        completion_tokens=draft.played.completion_tokens,
        ttft_ms=draft.played.ttft_ms,
        latency_ms=draft.played.latency_ms,
        per_token_ms=draft.played.per_token_ms,
        served_model=draft.played.served_model,
        attempts=draft.played.attempts,
        cached=draft.played.cached,
    )
