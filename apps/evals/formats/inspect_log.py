"""Inspect's logs, ``.json`` and ``.eval``: samples as cases, scorers as verifiers.

A case asks what the model was asked: the messages before its first answer, with what solvers added. An
``.eval`` file is a zip, of which each entry is bounded before and while it is unpacked.
"""

import io
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import zstandard

from apps.evals.formats.base import (
    MAX_BYTES,
    MAX_JUDGED_BY,
    Imported,
    Options,
    Unreadable,
    Upload,
    family_of,
    unused,
)
from apps.evals.formats.inspect_scorers import scorer_part
from apps.evals.formats.parts import NoEquivalent, judged
from apps.evals.formats.values import text_problem, value_problem

_ENTRY = 16 * 1024 * 1024
_MOST_ENTRIES = 100_000
_LISTED = b"PK\x01\x02"  # begins every entry of a zip file's list
_ZSTD = 93


def read(uploads: Sequence[Upload], options: Options) -> Imported:
    found = Imported()
    for upload in uploads:
        if upload.data.startswith(b"PK"):
            archive = _archive(upload)
            header = _header(upload, archive)
            samples = _zipped_samples(upload, archive)
        else:
            header = _json(upload.name, upload.data)
            samples = ((f"samples[{at}]", each) for at, each in enumerate(header.get("samples") or []))
        _log(found, upload, header, samples, options)
    return found


def is_eval(upload: Upload) -> bool:
    try:
        names = set(_archive(upload).namelist())
    except Unreadable:
        return False
    return "header.json" in names or "_journal/start.json" in names


def _log(
    found: Imported, upload: Upload, header: Mapping[str, Any],
    samples: Iterator[tuple[str, Mapping[str, Any]]], options: Options,
) -> None:  # fmt: skip
    spec = header.get("eval") if isinstance(header.get("eval"), Mapping) else {}
    assert isinstance(spec, Mapping)
    scorers = _scorers(header, spec)
    if len(scorers) > MAX_JUDGED_BY:
        raise Unreadable(upload.name, f"more than {MAX_JUDGED_BY} scorers")
    family = family_of(str(spec.get("task") or upload.name).rpartition("/")[2], options)
    taken: set[str] = {task.id for task in found.tasks}
    seen: set[str] = set()
    refused: dict[tuple[str, str], int] = {}
    count = 0
    for place, sample in samples:
        where, name = f"{upload.name}, {place}", str(sample.get("id", "sample"))
        if name in seen:
            continue  # another epoch of the same sample
        seen.add(name)
        count += 1
        parts = []
        for scorer, scorer_options in scorers:
            try:
                parts.append(scorer_part(scorer, scorer_options, sample))
            except NoEquivalent as problem:
                refused[scorer, str(problem)] = refused.get((scorer, str(problem)), 0) + 1
        try:
            if not parts:
                why = "none of its scorers has an equivalent" if scorers else "the log names no scorer"
                raise NoEquivalent(why)
            messages = _asked(sample)
            verdict = judged(parts)
        except NoEquivalent as problem:
            found.leave_out(where, name, str(problem))
            continue
        tools = _tools(sample)
        if tools:
            found.note("Tools are offered to the model; the log holds no program to run them with.")
        if sample.get("files") or sample.get("setup") or sample.get("sandbox"):
            found.leave_out(where, name, "it works in a sandbox with files or a setup of its own")
            continue
        fields = {
            "id": unused(name, taken),
            "family": family,
            "messages": messages,
            "verifier": verdict.verifier,
            "reference": verdict.reference,
            "tools": tools,
            "max_tokens": 1024,
            "tags": {key: kept for key, kept in (sample.get("metadata") or {}).items() if _flat(kept)},
        }
        if problem_text := value_problem(fields | {"tools": list(tools)}):
            found.leave_out(where, name, problem_text)
            continue
        found.add(where, **fields)
    for (scorer, reason), times in refused.items():
        found.leave_out(upload.name, scorer, f"{reason} (in {times} of {count} samples)")


def _scorers(header: Mapping[str, Any], spec: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    named = spec.get("scorers") or []
    found = [
        (str(each.get("name")), each.get("options") or {}) for each in named if isinstance(each, Mapping)
    ]
    if not found:  # logs from before the scorers stood in the specification
        scores = (header.get("results") or {}).get("scores") or []
        found = [(str(each.get("scorer") or each.get("name")), each.get("params") or {}) for each in scores]
    return [(name.rpartition("/")[2], options) for name, options in found]


def _asked(sample: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Messages before the model's first own one; a log without them has the sample's input."""
    messages: list[Any] = []
    for message in sample.get("messages") or []:
        own = message.get("source") == "generate"
        if message.get("role") == "assistant" and (own or message.get("source") is None):
            break
        messages.append(message)
    if not messages:
        given = sample.get("input")
        messages = given if isinstance(given, list) else [{"role": "user", "content": given}]
    if not messages or not all(isinstance(each, Mapping) and each.get("role") for each in messages):
        raise NoEquivalent("nothing is asked")
    attachments = sample.get("attachments") or {}
    return [_message(each, attachments) for each in messages]


def _message(message: Mapping[str, Any], attachments: Mapping[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    found: dict[str, Any] = {"role": message["role"]}
    if isinstance(content, list):
        found["content"] = [_content(part, attachments) for part in content]
    else:
        found["content"] = _attached(content, attachments)
    if message.get("tool_call_id"):
        found["tool_call_id"] = message["tool_call_id"]
    if message.get("tool_calls"):
        found["tool_calls"] = [
            {
                "id": call.get("id"),
                "type": "function",
                "function": {
                    "name": call.get("function"),
                    "arguments": json.dumps(call.get("arguments") or {}),
                },
            }
            for call in message["tool_calls"]
        ]
    return found


def _content(part: Any, attachments: Mapping[str, Any]) -> dict[str, Any]:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind == "text":
        return {"type": "text", "text": _attached(part.get("text"), attachments)}
    if kind == "image":
        url = _attached(part.get("image"), attachments)
        if not isinstance(url, str) or not url.startswith(("data:image/", "https://")):
            raise NoEquivalent("its image is a file that the log does not hold")
        return {"type": "image_url", "image_url": {"url": url}}
    raise NoEquivalent(f"its input holds {kind or 'something'} that is neither text nor image")


def _attached(value: Any, attachments: Mapping[str, Any]) -> Any:
    if isinstance(value, str) and value.startswith("attachment://"):
        kept = attachments.get(value.removeprefix("attachment://"))
        if not isinstance(kept, str):
            raise NoEquivalent("it refers to an attachment that the log does not hold")
        return kept
    return value


def _tools(sample: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    for event in sample.get("events") or []:
        if isinstance(event, Mapping) and event.get("event") == "model" and event.get("tools"):
            return tuple(
                {
                    "type": "function",
                    "function": {
                        key: tool[key] for key in ("name", "description", "parameters") if key in tool
                    },
                }
                for tool in event["tools"]
                if isinstance(tool, Mapping) and tool.get("name")
            )
    return ()


def _flat(value: Any) -> bool:
    return isinstance(value, str | int | float | bool) and not (
        isinstance(value, str) and text_problem(value)
    )


def _archive(upload: Upload) -> zipfile.ZipFile:
    if upload.data.count(_LISTED) > _MOST_ENTRIES:  # before a million entries become objects
        raise Unreadable(upload.name, f"the zip file has more than {_MOST_ENTRIES:,} entries")
    try:
        archive = zipfile.ZipFile(io.BytesIO(upload.data))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise Unreadable(upload.name, "the zip file is damaged") from None
    return archive


def _header(upload: Upload, archive: zipfile.ZipFile) -> dict[str, Any]:
    name = "header.json" if "header.json" in archive.namelist() else "_journal/start.json"
    if name not in archive.namelist():
        raise Unreadable(upload.name, "the zip file is no log of Inspect")
    return _json(upload.name, _unpacked(upload, archive.getinfo(name), _ENTRY))


def _zipped_samples(upload: Upload, archive: zipfile.ZipFile) -> Iterator[tuple[str, Mapping[str, Any]]]:
    left = MAX_BYTES * 4
    for entry in archive.infolist():
        if entry.filename.startswith("samples/") and entry.filename.endswith(".json"):
            data = _unpacked(upload, entry, min(_ENTRY, left))
            left -= len(data)
            yield entry.filename, _json(upload.name, data)


def _unpacked(upload: Upload, entry: zipfile.ZipInfo, most: int) -> bytes:
    """The entry's bytes, never more than ``most``, whatever its header claims."""
    start = entry.header_offset
    local = upload.data[start : start + 30]
    if len(local) < 30 or local[:4] != b"PK\x03\x04":
        raise Unreadable(upload.name, f"the entry {entry.filename[:80]} is damaged")
    start += 30 + int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
    packed = upload.data[start : start + entry.compress_size]
    try:
        if entry.compress_type == zipfile.ZIP_STORED:
            data = packed
        elif entry.compress_type == zipfile.ZIP_DEFLATED:
            data = zlib.decompressobj(-15).decompress(packed, most + 1)
        elif entry.compress_type == _ZSTD:
            reader = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(
                packed, read_across_frames=True
            )
            data = reader.read(most + 1)
        else:
            raise Unreadable(upload.name, f"the entry {entry.filename[:80]} is packed in an unknown way")
    except (zlib.error, zstandard.ZstdError):
        raise Unreadable(upload.name, f"the entry {entry.filename[:80]} is damaged") from None
    if len(data) > most:
        raise Unreadable(
            upload.name, f"the entry {entry.filename[:80]} unpacks to more than is read of a log"
        )
    return data


def _json(filename: str, data: bytes) -> dict[str, Any]:
    """A log may hold NaN as a score, so the whole is read as Python does; cases are checked one by one."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise Unreadable(filename, "a part of the log is not JSON") from None
    if not isinstance(value, dict):
        raise Unreadable(filename, "a part of the log is no JSON object")
    return value
