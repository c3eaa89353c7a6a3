"""Judge models pick one label for the answer; the label says whether it passes.

As with the other judges a malformed or unstable voice abstains, and voices whose labels fall on
different sides decide nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from domain.contracts import Check, TaskSpec, Verdict
from domain.judge_replies import Malformed, label_key, read_label
from domain.verifiers.base import Evidence, InvalidVerifier, VerifierKind, failed, passed, shown, unscored
from domain.verifiers.panel import (
    EVIDENCE,
    PANEL_SCHEMA,
    Silent,
    check_panel,
    content_problem,
    cut_checks,
    quorum,
    replies_of,
    settled,
    too_few,
    voice_name,
    voices,
)

MIN_WORDS = 1


def _verify(task: TaskSpec, answer: str, evidence: Evidence) -> Verdict:
    params = task.verifier.params
    if why := content_problem(task, answer, MIN_WORDS):
        return failed(why, checks=[Check(name="content", role="guard", score=0.0, reason=why)])
    heard = replies_of(task, evidence)
    if isinstance(heard, str):
        return unscored(heard)

    checks, chosen = cut_checks({"answer": answer}), []
    for voice in voices(params):
        said = voice_label(heard.get(voice, []), params, answer)
        if isinstance(said, Silent):
            checks.append(Check(name=voice_name(voice), reason=said.reason))
        else:
            chosen.append(said)
            score = float(said in params["passing_labels"])
            checks.append(Check(name=voice_name(voice), score=score, reason=f"Label {shown(said)}."))
    needed = quorum(params)
    if len(chosen) < needed:
        whys = dict.fromkeys(
            check.reason for check in checks if check.score is None and check.role == "terminal"
        )
        return unscored(too_few(len(chosen), needed), *whys, checks=checks)
    named = " and ".join(shown(label) for label in dict.fromkeys(chosen))
    sides = {label in params["passing_labels"] for label in chosen}
    if len(sides) > 1:
        return unscored(f"The judges disagree: {named}.", checks=checks)
    return passed(checks) if True in sides else failed(f"The judges' label is {named}.", checks=checks)


def voice_label(entries: Sequence[Mapping[str, Any]], params: Mapping[str, Any], answer: str) -> str | Silent:
    """The one label that a voice gives in all its repeats."""

    def read(reply: str) -> str | Malformed:
        return read_label(reply, params["labels"], answer)

    said = settled(entries, params.get("repeats", 1), read, lambda label: label)
    return said if isinstance(said, Silent) else said[0]


def _check(params: Mapping[str, Any], reference: Any) -> None:
    check_panel("label", params)
    labels, passing = params["labels"], params["passing_labels"]
    keys = [label_key(label) for label in labels]
    if len(set(keys)) < len(keys):
        raise InvalidVerifier("Verifier 'label': two labels differ by case or spaces only.")
    if unknown := [label for label in passing if label not in labels]:
        raise InvalidVerifier(
            f"Verifier 'label': the passing label {shown(unknown[0])} is none of the labels."
        )
    if len(passing) == len(labels):
        raise InvalidVerifier("Verifier 'label': every label passes, so no answer could fail.")


_LABELS = {
    "type": "array",
    "uniqueItems": True,
    "items": {"type": "string", "pattern": r"\S", "maxLength": 200},
}
KIND = VerifierKind(
    name="label",
    title="Labels by judge models",
    description=(
        "Judge models pick one of the labels for the answer; the passing labels pass. Malformed or unstable "
        "labels do not count, labels on different sides leave the answer unscored."
    ),
    verify=_verify,
    needs=frozenset({EVIDENCE}),
    params_schema={
        "type": "object",
        "properties": {
            **PANEL_SCHEMA,
            "labels": {**_LABELS, "minItems": 2, "maxItems": 50},
            "passing_labels": {**_LABELS, "minItems": 1, "maxItems": 49},
        },
        "required": ["criteria", "labels", "passing_labels"],
        "additionalProperties": False,
    },
    reference_schema={},
    check=_check,
)
