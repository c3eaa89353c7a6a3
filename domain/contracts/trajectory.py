"""What happened in one episode, token by token.

Shapes: in a ``Step`` the lists ``token_ids``, ``logprobs`` and ``mask`` have equal length T.
``mask`` is 1 only on tokens that the policy sampled (its end-of-turn token included);
observation tokens carry mask 0 and logprob 0.0. ``logprobs`` are natural logs of the
processed distribution the token was drawn from.
"""

from typing import Literal, Self

from pydantic import Field, model_validator

from domain.contracts.base import Contract
from domain.contracts.verdicts import Verdict

EpisodeState = Literal["passed", "failed", "error", "unscored", "cancelled"]


class FileChange(Contract):
    """One file of the workspace (or one document of a mock service's state) that a step changed.

    ``diff`` is a unified diff, cut to a few kilobytes, empty for binary files; the digests are
    sha256 of the whole content, "" where there was or is no file.
    """

    path: str
    change: Literal["added", "removed", "modified"]
    before: str = ""
    after: str = ""
    bytes: int = 0
    diff: str = ""


class SandboxStep(Contract):
    """What one act of the model did in its sandbox or mock service: enough to show and to replay it.

    ``command`` is as a person reads it. ``status`` is that of ``ExecResult``, "refused" for
    what a tool would not do, or "bad_action" for a turn in which no action could be read. Outputs are
    text for display, cut in the middle. ``snapshot`` is the digest of the workspace after the step, ""
    where none was kept; ``argv``, ``stdin_digest``, ``env`` and ``seed`` repeat it from the snapshot
    before (``argv`` ("put", path) writes the content of that digest), ``output_digest`` tells whether
    it said the same again. ``picture`` shows what was made, a part or a scene, as the ``data:`` address
    of a PNG of some kilobytes.
    """

    command: str
    status: str = "ok"
    exit_code: int | None = None
    signal: int | None = None
    stdout: str = ""
    stderr: str = ""
    detail: str = ""
    wall_s: float = 0.0
    user_s: float = 0.0
    sys_s: float = 0.0
    maxrss_bytes: int | None = None
    changes: tuple[FileChange, ...] = ()
    snapshot: str = ""
    argv: tuple[str, ...] = ()
    stdin_digest: str = ""
    env: dict[str, str] = Field(default_factory=dict)
    seed: int = 0
    output_digest: str = ""
    picture: str = ""


class Flag(Contract):
    """Why a detector without a language model finds a trajectory suspicious.

    ``step`` is the index of the turn, ``excerpt`` the few words that made it fire.
    """

    detector: str
    reason: str
    step: int = 0
    excerpt: str = ""


class Step(Contract):
    """One turn: what the model saw (``observation``), what it did (``action``)."""

    observation: str = ""
    action: str = ""
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    mask: tuple[int, ...] = ()
    policy_version: int = 0
    finish_reason: str = ""
    sandbox: SandboxStep | None = None

    @model_validator(mode="after")
    def _equal_lengths(self) -> Self:
        if not len(self.token_ids) == len(self.logprobs) == len(self.mask):
            raise ValueError("token_ids, logprobs and mask must have equal length")
        return self


class Trajectory(Contract):
    """A finished episode. ``reward`` is None when the infrastructure failed: it is then left
    out of every baseline and every denominator.

    ``hidden`` is the word of the stricter hidden verifier, where this pass was sampled for it.
    ``flags`` name what looks like gaming: a flagged trajectory feeds no supervised data and is
    screened from the gradient.

    ``ttft_ms`` is the first turn's time to its first token, None where answers are not streamed;
    ``latency_ms`` the sum over all turns, of the attempts that succeeded, without waits for a limit;
    ``per_token_ms`` the time of an output token after the first. ``attempts`` is 1 more than the
    number of requests that had to be sent again. Of a ``cached`` episode every answer came from the
    response cache, so nothing was timed.
    """

    task_id: str
    family: str
    group: str = ""
    sample: int = 0
    seed: int = 0
    prompt_ids: tuple[int, ...] = ()
    steps: tuple[Step, ...] = ()
    state: EpisodeState
    verdict: Verdict | None = None
    reward: float | None = None
    reward_terms: dict[str, float] = Field(default_factory=dict)
    hidden: Verdict | None = None
    flags: tuple[Flag, ...] = ()
    error: str = ""
    wall_s: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    ttft_ms: float | None = None
    latency_ms: float | None = None
    per_token_ms: float | None = None
    served_model: str = ""
    attempts: int = Field(default=1, ge=1)
    cached: bool = False


class EpisodeResult(Contract):
    """The part of an episode that an evaluation stores as a row; its fields are those of ``Trajectory``.

    What an episode of several turns did is line ``turns_line`` of the JSONL artifact ``turns_digest``:
    its steps without tokens. "" for an episode in an environment without turns.
    """

    task_id: str
    sample: int = 0
    state: EpisodeState
    score: float | None = None
    answer: str = ""
    verdict: Verdict | None = None
    flags: tuple[Flag, ...] = ()
    error: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    ttft_ms: float | None = None
    latency_ms: float | None = None
    per_token_ms: float | None = None
    served_model: str = ""
    attempts: int = Field(default=1, ge=1)
    cached: bool = False
    turns_digest: str = ""
    turns_line: int = Field(default=0, ge=0)
