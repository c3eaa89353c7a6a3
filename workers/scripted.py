"""A written solution played through its task's environment and judged, without a model.

Pack checks and the gauntlet use it: known-good answers, known-bad ones and doing nothing go the very
way that a model's turns go.
"""

from collections.abc import Callable, Mapping, Sequence

from domain.contracts import ChatMessage, EngineTarget, Sampling, TaskSpec, Trajectory
from packs.registry import Solution
from workers.engine.client import ChatCompletion, Completion
from workers.environments import Environment, final_turn, make_environment
from workers.episode import EpisodeJob, generate, judge
from workers.evidence import Collector
from workers.play import NothingMore

_NAME = "script"


class ScriptedPolicy:
    """Says its turns one after another, then nothing more. Serves one episode."""

    def __init__(self, turns: Sequence[str]) -> None:
        self.target = EngineTarget(base_url="script:", model=_NAME, protocol="chat")
        self._turns = iter(turns)

    async def chat(
        self, messages: Sequence[ChatMessage], *, task: TaskSpec, sampling: Sampling, seed: int
    ) -> ChatCompletion:
        """Raises ``NothingMore`` at the end of the script."""
        for text in self._turns:
            return ChatCompletion(
                text=text,
                tool_calls=(),
                finish_reason="stop",
                prompt_tokens=0,
                completion_tokens=0,
                model=_NAME,
                ttft_ms=None,
                latency_ms=0.0,
            )
        raise NothingMore

    async def prompt_ids(self, task: TaskSpec) -> tuple[int, ...]:
        raise TypeError("a script has no token ids")

    async def tokenize(
        self, messages: Sequence[ChatMessage], *, task: TaskSpec, add_generation_prompt: bool = True
    ) -> tuple[int, ...]:
        raise TypeError("a script has no token ids")

    async def stand_in_ids(self, task: TaskSpec) -> tuple[int, ...]:
        raise TypeError("a script has no token ids")

    async def knows_tool_role(self, task: TaskSpec) -> bool:
        return False

    async def complete(
        self, prompt_ids: Sequence[int], *, max_tokens: int, sampling: Sampling, seed: int
    ) -> Completion:
        raise TypeError("a script has no token ids")


async def play_solution(
    task: TaskSpec,
    solution: Solution,
    *,
    collectors: Mapping[str, Collector],
    environment_of: Callable[[str], Environment] = make_environment,
    hidden_share: float = 1.0,
    seed: int = 0,
) -> Trajectory:
    """Play ``solution`` and judge what came of it; what breaks on the host's side, and a task that makes
    no world, is state ``error``.

    A tuple is what is said turn by turn. A text is the one answer, or in an environment with turns the
    final answer, handed in as that environment takes one. Raises ``UnknownEnvironment``.
    """
    turns = (final_turn(task, solution),) if isinstance(solution, str) else solution or ("",)
    job = EpisodeJob(task=task, sample=0, seed=seed, group=task.id)
    draft = await generate(
        job,
        policy=ScriptedPolicy(turns),
        sampling=Sampling(),
        environment=environment_of(task.environment),
    )
    return await judge(draft, collectors=collectors, hidden_share=hidden_share)
