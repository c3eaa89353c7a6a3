"""OpenAI's hosted Evals as its API gave them: the eval, a run, output items, rows ``{"item": …}``.

Any number of these files come together, or one file ``{"eval": …, "runs": […], "rows": […]}``. The eval
says what judges, the run how the prompt is built, the rows what fills it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.evals.formats.base import (
    MAX_JUDGED_BY,
    Imported,
    Options,
    Unreadable,
    Upload,
    content_id,
    family_of,
    unused,
)
from apps.evals.formats.jsonl import messages_of
from apps.evals.formats.openai_graders import grader_part, text_of
from apps.evals.formats.parts import NoEquivalent, judged
from apps.evals.formats.rows import rows_of
from apps.evals.formats.templates import value_at
from apps.evals.formats.values import strict_json

_GUESSES = ("messages", "input", "prompt", "question", "query", "text")


@dataclass
class _Parts:
    """What the files hold, sorted by what it is."""

    evals: list[Mapping[str, Any]] = field(default_factory=list)
    runs: list[Mapping[str, Any]] = field(default_factory=list)
    rows: list[tuple[str, int, Mapping[str, Any], Mapping[str, Any]]] = field(default_factory=list)

    def add(self, where: str, line: int, value: Any) -> None:
        if not isinstance(value, Mapping):
            return
        kind = value.get("object")
        if kind == "list" and isinstance(value.get("data"), list):
            for at, each in enumerate(value["data"], start=1):
                self.add(f"{where}, entry {at}", line, each)
        elif kind == "eval" or "testing_criteria" in value:
            self.evals.append(value)
            self._inside(where, line, value)
        elif kind == "eval.run" or "data_source" in value:
            self.runs.append(value)
        elif "datasource_item" in value:
            item = value["datasource_item"]
            inner = item.get("item") if isinstance(item, Mapping) else None
            sample = value.get("sample") or {}
            self.rows.append((where, line, inner if isinstance(inner, Mapping) else item, sample))
        elif isinstance(value.get("item"), Mapping):
            self.rows.append((where, line, value["item"], value.get("sample") or {}))
        else:
            self._inside(where, line, value)

    def _inside(self, where: str, line: int, value: Mapping[str, Any]) -> None:
        for key in ("eval", "run"):
            self.add(f"{where}, {key}", line, value.get(key))
        for key in ("runs", "rows", "data", "output_items"):
            each = value.get(key)
            for at, inner in enumerate(each if isinstance(each, list) else [], start=1):
                self.add(f"{where}, {key}[{at}]", line, inner)


def read(uploads: Sequence[Upload], options: Options) -> Imported:
    found, parts = Imported(), _Parts()
    for upload in uploads:
        for where, line, value in _values(upload):
            parts.add(where, line, value)
    if not parts.evals:
        raise Unreadable(
            uploads[0].name, "no eval is among the files; send the eval's JSON, which says what judges"
        )
    if len(parts.evals) > 1:
        raise Unreadable(uploads[0].name, f"{len(parts.evals)} evals are among the files; send one at a time")
    run = _run(found, parts)
    rows = parts.rows or list(_inline(run))
    if not rows:
        raise Unreadable(
            uploads[0].name,
            "no rows are among the files; send the data (JSONL of {“item”: …}) or the output items",
        )
    _cases(
        found,
        parts.evals[0],
        run,
        rows,
        options,
        family_of(str(parts.evals[0].get("name") or "eval"), options),
    )
    return found


def _values(upload: Upload) -> Iterator[tuple[str, int, Any]]:
    data = upload.data.lstrip()
    if data[:1] == b"{":
        try:
            yield upload.name, 0, strict_json(data.decode())
            return
        except UnicodeDecodeError:
            raise Unreadable(upload.name, "the file is not UTF-8") from None
        except ValueError:
            pass  # more than one object: JSONL
    for line, value in rows_of(upload):
        yield f"{upload.name}, line {line}" if line else upload.name, line, value


def _run(found: Imported, parts: _Parts) -> Mapping[str, Any]:
    """The run that says how the prompt is built; of several the first with a prompt."""
    told = [run for run in parts.runs if (run.get("data_source") or {}).get("input_messages")]
    if len(told) > 1:
        found.note(f"{len(told)} runs build a prompt; the one called “{told[0].get('name', '')}” was taken.")
    return told[0] if told else parts.runs[0] if parts.runs else {}


def _inline(run: Mapping[str, Any]) -> Iterator[tuple[str, int, Mapping[str, Any], Mapping[str, Any]]]:
    source = (run.get("data_source") or {}).get("source") or {}
    for at, row in enumerate(source.get("content") or [], start=1):
        if isinstance(row, Mapping) and isinstance(row.get("item"), Mapping):
            yield f"row {at} of the run", 0, row["item"], row.get("sample") or {}


def _cases(
    found: Imported, definition: Mapping[str, Any], run: Mapping[str, Any],
    rows: Sequence[tuple[str, int, Mapping[str, Any], Mapping[str, Any]]], options: Options, family: str,
) -> None:  # fmt: skip
    criteria = [each for each in definition.get("testing_criteria") or [] if isinstance(each, Mapping)]
    if len(criteria) > MAX_JUDGED_BY:
        raise Unreadable("testing_criteria", f"more than {MAX_JUDGED_BY} criteria")
    refused: dict[tuple[str, str], int] = {}
    taken: set[str] = set()
    sampling = (run.get("data_source") or {}).get("sampling_params") or {}
    for where, line, item, sample in rows:
        if not isinstance(item, Mapping):
            found.leave_out(where, "row", "its item is no object")
            continue
        parts = []
        for criterion in criteria:
            try:
                parts.append(grader_part(criterion, item))
            except (NoEquivalent, TypeError, ValueError) as problem:
                key = (str(criterion.get("name") or criterion.get("type")), str(problem))
                refused[key] = refused.get(key, 0) + 1
        try:
            messages = _messages(run, item, sample, options)
            if not parts:
                raise NoEquivalent("none of its criteria has an equivalent")
            verdict = judged(parts)
        except NoEquivalent as problem:
            found.leave_out(where, "row", str(problem))
            continue
        given = item.get("id")
        case_id = str(given) if isinstance(given, str | int) and not isinstance(given, bool) else ""
        more = {"tools": sampling["tools"]} if isinstance(sampling.get("tools"), list) else {}
        limit = sampling.get("max_completion_tokens") or sampling.get("max_completions_tokens")
        if isinstance(limit, int) and 1 <= limit <= 32_768:
            more["max_tokens"] = limit
        found.add(
            where,
            line,
            id=unused(case_id, taken) if case_id else content_id("row", messages, taken),
            family=family,
            messages=messages,
            verifier=verdict.verifier,
            reference=verdict.reference,
            **more,
        )
    for (name, reason), times in refused.items():
        rows_said = "in every row" if times == len(rows) else f"in {times} of {len(rows)} rows"
        found.leave_out("testing_criteria", name, f"{reason} ({rows_said})")
    if any(each.get("type") in ("score_model", "label_model") for each in criteria):
        found.note("Model graders ask the judges of this project, not the model that the eval named.")
    if sampling.get("response_format") or sampling.get("text"):
        found.note("The run's response format was not taken: a run here sends messages and tools.")


def _messages(
    run: Mapping[str, Any], item: Mapping[str, Any], sample: Mapping[str, Any], options: Options
) -> list[dict[str, Any]]:
    if options.prompt:
        return messages_of(text_of(options.prompt, item))
    given = (run.get("data_source") or {}).get("input_messages") or {}
    if given.get("type") == "item_reference":
        return messages_of(value_at({"item": item}, str(given.get("item_reference", ""))))
    if given.get("template"):
        return [_message(each, item) for each in given["template"]]
    if isinstance(sample.get("input"), list) and sample["input"]:
        return messages_of(sample["input"])
    for name in _GUESSES:
        if item.get(name):
            return messages_of(item[name])
    raise NoEquivalent(
        "nothing says what is asked: send the run too, or write the prompt, as {{item.question}}"
    )


def _message(message: Any, item: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise NoEquivalent("its prompt has a message that is no object")
    role = {"developer": "system"}.get(str(message.get("role")), str(message.get("role", "user")))
    content = message.get("content", "")
    if isinstance(content, Mapping):
        content = [content]
    if isinstance(content, list):
        return {"role": role, "content": [_content(each, item) for each in content]}
    return {"role": role, "content": text_of(content, item)}


def _content(part: Any, item: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": text_of(part, item)}
    if isinstance(part, Mapping) and part.get("type") in ("input_text", "output_text", "text"):
        return {"type": "text", "text": text_of(part.get("text", ""), item)}
    if isinstance(part, Mapping) and part.get("type") in ("input_image", "image_url"):
        url = part.get("image_url")
        url = url.get("url") if isinstance(url, Mapping) else url
        return {"type": "image_url", "image_url": {"url": text_of(url, item)}}
    raise NoEquivalent("its prompt holds sound or files")
