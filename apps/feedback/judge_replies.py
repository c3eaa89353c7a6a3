"""One judged answer with its texts and the judges' own words, read from the calibration's artifacts."""

from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

from apps.feedback.models import JudgedAnswer
from artifacts import ArtifactMissing, get_store
from domain.storable import storable
from domain.verifiers.panel import EVIDENCE


class Shown(NamedTuple):
    """``gone`` says that the texts are not kept any more. ``replies`` are the judges' entries: prompt,
    model, repeat, order, and reply or error."""

    messages: list[dict[str, Any]]
    answer: str
    baseline: str
    replies: list[Mapping[str, Any]]
    gone: bool = False


def replies_to(row: JudgedAnswer) -> Shown:
    calibration, store = row.calibration, get_store()
    try:
        item = next(islice(store.iter_jsonl(calibration.items_digest), row.index, None))
        outcome: Mapping[str, Any] = {}
        if calibration.results_digest:
            outcome = next(islice(store.iter_jsonl(calibration.results_digest), row.index, None))
    except ArtifactMissing:
        return Shown([], "", "", [], gone=True)
    report = outcome.get("evidence", {}).get(EVIDENCE, {})
    return Shown(
        messages=storable(item["task"]["messages"]),
        answer=storable(item["answer"]),
        baseline=item["task"]["reference"] or "",
        replies=storable(report.get("judgements", ())),
    )
