"""What is asked of a model, and how the answer is judged.

Evaluation cases and training tasks are the same thing: a ``TaskSpec``. ``reference`` holds
what the verifier compares with; it never enters the process that runs a model's answer.
"""

from typing import Any, Literal

from pydantic import Field

from domain.contracts.base import Contract

Json = Any  # a value that json.loads can return


class ChatMessage(Contract):
    """One message in OpenAI chat format. ``content`` is text or a list of content parts."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | list[dict[str, Json]] | None = None
    name: str | None = None
    tool_calls: list[dict[str, Json]] | None = None
    tool_call_id: str | None = None


class VerifierSpec(Contract):
    """Which verifier, and its parameters. ``kind`` names a module of ``domain/verifiers``."""

    kind: str = Field(min_length=1)
    params: dict[str, Json] = Field(default_factory=dict)


class HiddenCheck(Contract):
    """A stricter judgement that is used on a sample of passes only, so that nothing can be fitted
    to it: other inputs, more relations, the whole state. Never shown to those who train."""

    verifier: VerifierSpec
    reference: Json = None


class TaskSpec(Contract):
    """One task. ``source`` is the cluster: cases that share an origin share a source.

    ``environment`` names the world it happens in, ``environment_params`` what that world starts
    with (files, state of the mock services, turns; see ``workers/environments``): all of it may be
    seen by the model. ``tags`` are what results may be sliced by, such as the length and depth of a
    long context; the tag ``canary`` marks an impossible task, of which any pass is a cheat.
    """

    id: str = Field(min_length=1, max_length=200)
    family: str = Field(min_length=1, max_length=100)
    messages: tuple[ChatMessage, ...] = Field(min_length=1)
    verifier: VerifierSpec
    reference: Json = None
    environment: str = "single_turn"
    environment_params: dict[str, Json] = Field(default_factory=dict)
    hidden: HiddenCheck | None = None
    tools: tuple[dict[str, Json], ...] = ()
    source: str = ""
    max_tokens: int = Field(default=96, ge=1, le=32_768)
    tags: dict[str, Json] = Field(default_factory=dict)


class Sampling(Contract):
    """How tokens are drawn. Training refuses anything but top_p = 1 without penalties."""

    temperature: float = Field(default=0.0, ge=0.0, le=2.0)
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    seed: int = 0
    samples: int = Field(default=1, ge=1, le=256)
    max_tokens: int | None = Field(default=None, ge=1, le=32_768)  # in place of what each task says


class EngineTarget(Contract):
    """Where completions come from: an OpenAI-compatible base URL and a model name.

    ``token`` is a run-scoped gateway token, never a provider's key. ``adapter_digest`` lets a
    worker load the adapter again after the engine was restarted. ``identity`` is a digest of all that
    makes this target answer as it does (address, model, weights); two targets that may answer
    differently never share one.

    The limits are those of an external endpoint, None for an engine of ours: attempts of one request,
    seconds for one attempt (``timeout_s``) and for all of them with the waits between
    (``deadline_s``). Rates and concurrency hold for everybody who asks the endpoint together; the
    gateway keeps them, a worker only asks no faster than is useful.

    ``native_tools``: tools are offered as the API has them, and the model calls them; else they are only
    shown, and a call is text that the model wrote.
    """

    base_url: str
    model: str
    token: str = ""
    adapter_digest: str = ""
    protocol: Literal["tokens", "chat"] = "tokens"
    timeout_s: float = Field(default=60.0, gt=0)
    identity: str = ""
    max_attempts: int | None = Field(default=None, ge=1)
    deadline_s: float | None = Field(default=None, gt=0)
    max_concurrency: int | None = Field(default=None, ge=1)
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    native_tools: bool = False
