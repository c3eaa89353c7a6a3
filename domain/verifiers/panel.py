"""What the judge kinds share: voices, the evidence of their replies, and what one voice has settled on.

A voice is one way of asking (``prompt``) of one model. Its replies come as evidence. A voice that is
malformed, changes its mind or could not be reached abstains; a quorum of the others decides.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from domain.contracts import ChatMessage, Check, TaskSpec, VerifierSpec
from domain.hollow import hollow
from domain.judge_replies import Malformed
from domain.judging import PROMPTS, Turn
from domain.quoting import MAX_CHARACTERS, left_out
from domain.verifiers.base import InvalidVerifier

EVIDENCE = "judgements"
JUDGE_KINDS = ("judge", "label", "pairwise")
AGGREGATES = ("unanimous", "majority", "mean")
Voice = tuple[str, str]
Said = TypeVar("Said")


class Silent(NamedTuple):
    """A voice without a verdict. ``kind``: malformed, unstable, error or missing."""

    kind: str
    reason: str


def voices(params: Mapping[str, Any]) -> tuple[Voice, ...]:
    """Every (prompt, model) that is to be asked; the model "" is the one judge of the worker."""
    models = params.get("models") or [""]
    return tuple((prompt, model) for prompt in params.get("prompts", PROMPTS[:2]) for model in models)


def voice_name(voice: Voice) -> str:
    prompt, model = voice
    return f"judge {prompt} of {model}" if model else f"judge {prompt}"


def quorum(params: Mapping[str, Any]) -> int:
    """How many voices must have given a usable verdict."""
    return int(params.get("min_verdicts", min(2, len(voices(params)))))


def turns_of(task: TaskSpec) -> tuple[Turn, ...]:
    """What the judge is shown before the answer: the parameters' own question, or the task's messages."""
    given = task.verifier.params.get("question")
    if isinstance(given, str):
        return (Turn("user", given),)
    return tuple(Turn(message.role, _said(message)) for message in task.messages)


def question_of(task: TaskSpec) -> str:
    """The same as one text."""
    return "\n\n".join(turn.text for turn in turns_of(task))


def content_problem(task: TaskSpec, answer: str, min_words: int) -> str:
    """Why ``answer`` fails without being shown to a judge, or an empty text."""
    words = int(task.verifier.params.get("min_words", min_words))
    return hollow(answer, min_words=words, question=question_of(task))


def ask_id(spec: VerifierSpec, reference: Any) -> str:
    """Tells the replies of one part of a composed verifier from those of another."""
    text = json.dumps([spec.kind, spec.params, reference], sort_keys=True, default=str)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def replies_of(task: TaskSpec, evidence: Mapping[str, Any]) -> dict[Voice, list[Mapping[str, Any]]] | str:
    """What each voice replied to this very verifier, or a sentence why nothing is known."""
    report = evidence.get(EVIDENCE)
    if isinstance(report, Mapping) and isinstance(report.get("parts"), Mapping):
        report = report["parts"].get(ask_id(task.verifier, task.reference))
    if not isinstance(report, Mapping):
        return "No judge was asked: none is configured here."
    if report.get("status") != "ok":
        return f"The judges could not be asked. {str(report.get('detail', ''))[:200]}".rstrip()
    heard: dict[Voice, list[Mapping[str, Any]]] = {}
    given = report.get("judgements")
    for entry in given if isinstance(given, list) else []:
        if isinstance(entry, Mapping) and (isinstance(entry.get("reply"), str) or entry.get("error")):
            voice = (str(entry.get("prompt", "")), str(entry.get("model", "")))
            heard.setdefault(voice, []).append(entry)
    return heard


def settled(
    entries: Sequence[Mapping[str, Any]],
    repeats: int,
    read: Callable[[str], Said | Malformed],
    side: Callable[[Said], object],
) -> list[Said] | Silent:
    """What one voice says in all its repeats, or why it abstains. ``side`` is what must not change."""
    if len(entries) < repeats:
        return Silent("missing", "It was not asked, or its reply was lost.")
    lost = next((str(entry["error"]) for entry in entries if not isinstance(entry.get("reply"), str)), "")
    if lost:
        return Silent("error", f"It could not be asked: {lost[:200]}")
    said: list[Said] = []
    for entry in entries:
        reading = read(entry["reply"])
        if isinstance(reading, Malformed):
            return Silent("malformed", reading.reason)
        said.append(reading)
    if len({side(one) for one in said}) > 1:
        return Silent("unstable", f"It changed its verdict when asked {len(said)} times.")
    return said


def too_few(decided: int, needed: int) -> str:
    return f"{decided} of at least {needed} {'judge' if needed == 1 else 'judges'} gave a usable verdict."


def cut_checks(texts: Mapping[str, str]) -> list[Check]:
    """Says so where a judge saw only part of a text."""
    return [
        Check(
            name=f"length of the {name}",
            role="format",
            reason=f"The judges saw {MAX_CHARACTERS:,} of {len(text):,} characters: the first and the last.",
        )
        for name, text in texts.items()
        if left_out(text)
    ]


def check_panel(kind: str, params: Mapping[str, Any]) -> None:
    asked = len(voices(params))
    if params.get("min_verdicts", 1) > asked:
        raise InvalidVerifier(
            f"Verifier '{kind}': {params['min_verdicts']} verdicts are asked of {asked} "
            f"{'voice' if asked == 1 else 'voices'}."
        )


def _said(message: ChatMessage) -> str:
    """Text and, by name, what is no text: a judge must not think that nothing was there."""
    if isinstance(message.content, str):
        text = message.content
    else:
        parts = message.content or []
        text = "\n".join(
            str(part.get("text", "")) if part.get("type", "text") == "text" else f"[{part.get('type')}]"
            for part in parts
        )
    calls = [json.dumps(call.get("function", call), ensure_ascii=False) for call in message.tool_calls or []]
    return "\n".join(filter(None, [text, *(f"[tool call] {call}" for call in calls)]))


_NAMES = {"type": "array", "minItems": 1, "maxItems": 8, "uniqueItems": True}
PANEL_SCHEMA: Mapping[str, Any] = {
    "criteria": {
        "type": "array",
        "minItems": 1,
        "maxItems": 20,
        "items": {"type": "string", "pattern": r"\S", "maxLength": 4000},
    },
    "question": {"type": "string"},
    "prompts": {**_NAMES, "items": {"enum": list(PROMPTS)}},
    "models": {**_NAMES, "items": {"type": "string", "minLength": 1}},
    "repeats": {"type": "integer", "minimum": 1, "maximum": 5},
    "min_verdicts": {"type": "integer", "minimum": 1, "maximum": 24},
    "min_words": {"type": "integer", "minimum": 1, "maximum": 1000},
}
