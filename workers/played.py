"""An episode so far: its steps, and what its answers took in tokens, time and attempts."""

from dataclasses import dataclass, field

from domain.contracts import Step
from workers.engine.client import ChatCompletion, Completion
from workers.environments import Answer


@dataclass
class Played:
    """An episode so far; it stays readable when a turn breaks off."""

    prompt_ids: tuple[int, ...] = ()
    answer: Answer | None = None
    steps: list[Step] = field(default_factory=list)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    ttft_ms: float | None = None
    latency_ms: float | None = None
    served_model: str = ""
    attempts: int = 1
    replies: int = 0
    cached_replies: int = 0
    decode_ms: float = 0.0  # after the first token of each streamed turn
    decoded: int = 0  # the tokens that took it

    @property
    def cached(self) -> bool:
        """Every answer came from the response cache."""
        return 0 < self.replies == self.cached_replies

    @property
    def per_token_ms(self) -> float | None:
        """Milliseconds for an output token after the first; None where nothing was streamed."""
        return self.decode_ms / self.decoded if self.decoded else None

    def note(self, reply: Completion | ChatCompletion) -> None:
        """Count a reply and its time. One from the cache took none: whatever it once took is not
        this episode's."""
        self.replies += 1
        self.attempts += reply.attempts - 1
        self.served_model = reply.model
        if reply.cached:
            self.cached_replies += 1
            return
        self.latency_ms = (self.latency_ms or 0.0) + reply.latency_ms
        ttft_ms = reply.ttft_ms if isinstance(reply, ChatCompletion) else None
        if ttft_ms is None:
            return
        if self.replies == 1:
            self.ttft_ms = ttft_ms
        if reply.completion_tokens > 1:
            self.decode_ms += max(0.0, reply.latency_ms - ttft_ms)
            self.decoded += reply.completion_tokens - 1

    def cut_off(self) -> None:
        """No room for another turn: the last one ends the episode as a length stop."""
        self.steps[-1] = self.steps[-1].model_copy(update={"finish_reason": "length"})
