"""OpenAI Evals, the open-source registry: samples as JSONL and a YAML that names the class.

Read are Match, Includes, FuzzyMatch and JsonMatch with the meaning they have there. Other classes are
programs of their own and are left out by name.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from apps.evals.formats.base import Imported, Options, Unreadable, Upload, content_id, family_of
from apps.evals.formats.jsonl import messages_of
from apps.evals.formats.parts import NoEquivalent, any_of, equal_json, judged, part
from apps.evals.formats.rows import rows_of
from apps.evals.formats.safe_yaml import load_yaml
from apps.evals.formats.values import strict_json

CLASSES = ("Match", "Includes", "FuzzyMatch", "JsonMatch")
_FUZZY = """import re
import string


def normalized(text):
    text = "".join(char for char in text.lower() if char not in string.punctuation)
    return " ".join(re.sub(r"\\b(a|an|the)\\b", " ", text).split())


def grade(sample, item):
    said = normalized(sample["output_text"])
    for ideal in item["ideal"]:
        ideal = normalized(ideal)
        if said == ideal or (said and ideal and (said in ideal or ideal in said)):
            return 1.0
    return 0.0
"""


def read(uploads: Sequence[Upload], options: Options) -> Imported:
    found = Imported()
    definitions = [each for each in uploads if each.name.lower().endswith((".yaml", ".yml"))]
    samples = [each for each in uploads if each not in definitions]
    if not samples:
        raise Unreadable(
            uploads[0].name, "it only defines evals; send the samples (JSONL) that it names with it"
        )
    named = _classes(found, definitions)
    taken: set[str] = set()
    for upload in samples:
        kind, arguments = _class_of(found, upload.name, named, options)
        if kind not in CLASSES:
            found.leave_out(upload.name, kind, "this class is a program of its own and has no equivalent")
            continue
        for line, value in rows_of(upload):
            _case(found, upload.name, line, value, kind, arguments, family_of(upload.name, options), taken)
    return found


def _classes(found: Imported, definitions: Sequence[Upload]) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """Class and arguments by the samples' file name."""
    named: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for upload in definitions:
        document = load_yaml(upload)
        for name, body in document.items() if isinstance(document, Mapping) else ():
            if not isinstance(body, Mapping) or "class" not in body:
                continue
            arguments = body.get("args") or {}
            file = str(arguments.get("samples_jsonl", "")).rpartition("/")[2]
            kind = str(body["class"]).rpartition(":")[2]
            if not file:
                line = getattr(body, "line", 0)
                found.leave_out(f"{upload.name}, line {line}", str(name), "it names no samples_jsonl")
            named[file] = (kind, arguments)
    return named


def _class_of(
    found: Imported, filename: str, named: Mapping[str, tuple[str, Mapping[str, Any]]], options: Options
) -> tuple[str, Mapping[str, Any]]:
    if options.verifier in CLASSES:
        return options.verifier, {}
    plain = filename.rpartition("/")[2]
    if plain in named:
        return named[plain]
    if len(named) == 1:
        ((file, chosen),) = named.items()
        found.note(f"{filename} was taken for {file}, the only samples that the YAML names.")
        return chosen
    found.note(f"No YAML names {filename}; it is judged as Match: the answer begins with the ideal one.")
    return "Match", {}


def _case(
    found: Imported, filename: str, line: int, value: Mapping[str, Any], kind: str,
    arguments: Mapping[str, Any], family: str, taken: set[str],
) -> None:  # fmt: skip
    where = f"{filename}, line {line}" if line else filename
    if "input" not in value or "ideal" not in value:
        found.leave_out(where, "sample", "it has no input or no ideal")
        return
    ideals = value["ideal"] if isinstance(value["ideal"], list) else [value["ideal"]]
    ideals = [str(ideal) for ideal in ideals]
    messages = messages_of(value["input"])
    try:
        if not ideals:
            raise NoEquivalent("its list of ideal answers is empty")
        verdict = judged([_part(kind, ideals, arguments)])
    except (NoEquivalent, ValueError) as problem:
        found.leave_out(where, "sample", str(problem))
        return
    asked = {key: kept for key, kept in value.items() if key not in ("input", "ideal")}
    found.add(
        where,
        line,
        id=content_id("sample", messages, taken),
        family=family,
        messages=messages,
        verifier=verdict.verifier,
        reference=verdict.reference,
        tags=asked,
    )


def _part(kind: str, ideals: Sequence[str], arguments: Mapping[str, Any]) -> dict[str, Any]:
    texts = list(dict.fromkeys(ideals))
    if kind == "Match":
        return part("contains", {"texts": texts, "mode": "any", "where": "start"})
    if kind == "Includes":
        folded = bool(arguments.get("ignore_case"))
        return part("contains", {"texts": texts, "mode": "any", **({"ignore_case": True} if folded else {})})
    if kind == "JsonMatch":
        return any_of([equal_json(strict_json(ideal)) for ideal in texts])
    return part("grader_python", {"source": _FUZZY, "item": {"ideal": texts}, "pass_threshold": 1.0})
