"""Which format files have: by their content first, by their name where the content leaves it open."""

import json
import logging
from collections.abc import Mapping, Sequence
from traceback import extract_tb
from typing import Any

from apps.evals.formats import (
    csv_table,
    humaneval,
    inspect_log,
    jsonl,
    openai_hosted,
    openai_registry,
    promptfoo,
)
from apps.evals.formats.base import WRONG_SHAPE, Format, Imported, Options, Unreadable, Upload
from apps.evals.formats.safe_yaml import MAX_YAML, load_yaml
from apps.evals.formats.values import all_unzipped, decoded

logger = logging.getLogger(__name__)

FORMATS: Mapping[str, Format] = {
    each.name: each
    for each in (
        Format("tasks", "JSONL of cases, as exported here", jsonl.read_tasks),
        Format("jsonl", "JSONL of questions and expected answers", jsonl.read_plain),
        Format("csv", "CSV", csv_table.read),
        Format("openai_hosted", "OpenAI Evals, hosted", openai_hosted.read),
        Format("openai_registry", "OpenAI Evals, open-source registry", openai_registry.read),
        Format("promptfoo", "promptfoo", promptfoo.read),
        Format("inspect", "Inspect log", inspect_log.read),
        Format("humaneval", "HumanEval", humaneval.read),
    )
}
_HEAD = 64 * 1024
_FIRST = ("openai_hosted", "promptfoo", "inspect", "openai_registry")


def read_files(uploads: Sequence[Upload], options: Options) -> tuple[Format, Imported]:
    """The format of the files, or the one in ``options``, and what it reads. Raises ``Unreadable``."""
    files = all_unzipped([each for each in uploads if each.data.strip(b"\xef\xbb\xbf \t\r\n")])
    if not files:
        raise Unreadable(uploads[0].name if uploads else "the upload", "the file holds no case")
    named = [(format_name(each), each) for each in files]
    if options.format:
        if options.format not in FORMATS:
            raise Unreadable(files[0].name, f"“{options.format}” is none of: {', '.join(FORMATS)}")
        chosen = options.format
    else:
        chosen = next((name for name in _FIRST if any(name == each for each, _ in named)), named[0][0])
    if not chosen:
        names = ", ".join(each.title for each in FORMATS.values())
        raise Unreadable(files[0].name, f"its format is not known; it may be one of: {names}")
    files = [each for name, each in named if name == chosen] + [
        each for name, each in named if name != chosen
    ]
    found = _read(FORMATS[chosen], files, options)
    if not found.tasks and not found.left_out:
        raise Unreadable(files[0].name, "the file holds no case")
    return FORMATS[chosen], found


def _read(chosen: Format, files: Sequence[Upload], options: Options) -> Imported:
    """A format may be half kept to: a number where an object belongs. That is the file's fault."""
    try:
        return chosen.read(files, options)
    except Unreadable:
        raise
    except WRONG_SHAPE as error:
        frame = extract_tb(error.__traceback__)[-1]
        place = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
        logger.warning("import of %s not readable: %s at %s", chosen.name, type(error).__name__, place)
        reason = f"a part of it has not the shape of {chosen.title}"
        raise Unreadable(files[0].name, reason) from None


def format_name(upload: Upload) -> str:
    """The format of one file; empty where nothing tells."""
    name = upload.name.lower()
    if upload.data.startswith(b"PK"):
        return "inspect" if inspect_log.is_eval(upload) else ""
    if name.endswith((".yaml", ".yml")):
        return _of_yaml(upload)
    head = upload.data[:_HEAD].removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] in (b"{", b"["):
        return _of_json(upload, head)
    if name.endswith((".csv", ".tsv")) or csv_table.looks_like(decoded(upload, [])[:20_000]):
        return "csv"
    if len(upload.data) <= MAX_YAML and b":" in head:
        try:
            return _of_yaml(upload)
        except Unreadable:
            return ""
    return ""


def _of_yaml(upload: Upload) -> str:
    document = load_yaml(upload)
    if isinstance(document, Mapping):
        if {"prompts", "tests", "providers", "scenarios"} & document.keys():
            return "promptfoo"
        if any(isinstance(body, Mapping) and "class" in body for body in document.values()):
            return "openai_registry"
    return ""


def _of_json(upload: Upload, head: bytes) -> str:
    row = _first_object(upload, head)
    if not isinstance(row, Mapping):
        return ""
    keys = row.keys()
    if {"messages", "verifier"} <= keys:
        return "tasks"
    if keys >= humaneval.COLUMNS:
        return "humaneval"
    if {"eval", "version", "status"} <= keys:
        return "inspect"
    if (
        row.get("object") in ("eval", "eval.run", "eval.run.output_item", "list")
        or "testing_criteria" in keys
    ):
        return "openai_hosted"
    if "datasource_item" in keys or "data_source" in keys or isinstance(row.get("item"), Mapping):
        return "openai_hosted"
    if "eval" in keys and isinstance(row["eval"], Mapping):
        return "openai_hosted"
    if "prompts" in keys and ("tests" in keys or "providers" in keys):
        return "promptfoo"
    if {"input", "ideal"} <= keys:
        return "openai_registry"
    # what has the marks of a case of ours, even a broken one, is held to our own form
    if {"family", "verifier", "reference"} & keys and not set(jsonl.EXPECTED[:5]) & keys:
        return "tasks"
    return "jsonl"


def _first_object(upload: Upload, head: bytes) -> Any:
    """The first JSON object: a line of JSONL, the first of a list, or the whole file."""
    line = head.split(b"\n", 1)[0]
    for text in (line, upload.data):
        try:
            value = json.loads(text.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            continue
        return value[0] if isinstance(value, list) and value else value
    # a broken line further on is named by the reader; a broken first one by our own form
    return {"verifier": None} if head[:1] == b"{" else None
