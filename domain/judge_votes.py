"""What each voice of a judge verifier said about one answer, read again from the kept replies.

The verdict says what the panel decided. Measuring a judge needs the voices apart: how far they agree,
why one kept silent, and whether a comparison followed the place of an answer.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from domain.contracts import TaskSpec
from domain.judge_replies import Malformed, read_choice
from domain.verifiers.judge import voice_judgement
from domain.verifiers.label import voice_label
from domain.verifiers.pairwise import SCORES, Preference, voice_preference
from domain.verifiers.panel import Silent, Voice, replies_of, voices


class Vote(NamedTuple):
    """``passed`` is None where the voice kept silent, and ``silence`` is then the kind of it.

    Of a comparison: ``firsts`` of ``picks`` choices between the two places fell on the first one, and
    ``contradicts`` says that the two orders gave opposite winners.
    """

    voice: Voice
    passed: bool | None
    silence: str = ""
    reason: str = ""
    firsts: int = 0
    picks: int = 0
    contradicts: bool = False


def votes(task: TaskSpec, answer: str, evidence: Mapping[str, Any]) -> list[Vote]:
    """One vote for each voice that was to be asked; none where nobody was asked at all."""
    heard = replies_of(task, evidence)
    if isinstance(heard, str) or not heard:
        return []
    return [_vote(task, answer, voice, heard.get(voice, [])) for voice in voices(task.verifier.params)]


def _vote(task: TaskSpec, answer: str, voice: Voice, entries: Sequence[Mapping[str, Any]]) -> Vote:
    params = task.verifier.params
    if task.verifier.kind == "label":
        label = voice_label(entries, params, answer)
        if isinstance(label, Silent):
            return Vote(voice, None, label.kind, label.reason)
        return Vote(voice, label in params["passing_labels"], reason=label)
    if task.verifier.kind == "pairwise":
        texts = f"{answer}\n{task.reference}"
        return _comparison(voice, voice_preference(entries, params, texts), entries, params, texts)
    said = voice_judgement(entries, params, answer)
    if isinstance(said, Silent):
        return Vote(voice, None, said.kind, said.reason)
    return Vote(voice, said.passed, reason=f"{said.score:.2f}")


def _comparison(
    voice: Voice,
    said: Preference | Silent,
    entries: Sequence[Mapping[str, Any]],
    params: Mapping[str, Any],
    texts: str,
) -> Vote:
    """Places are counted over all readable replies: a voice that changes its mind has a bias too."""
    read = [read_choice(entry["reply"], texts) for entry in entries if isinstance(entry.get("reply"), str)]
    chosen = [choice for choice in read if not isinstance(choice, Malformed) and choice != "tie"]
    firsts, picks = chosen.count("A"), len(chosen)
    if isinstance(said, Silent):
        return Vote(voice, None, said.kind, said.reason, firsts, picks)
    passes = said.outcome in params.get("passing_outcomes", ["win"])
    reason = f"{said.outcome} ({SCORES[said.outcome]:g})"
    return Vote(voice, passes, "", reason, firsts, picks, said.contradicts)
