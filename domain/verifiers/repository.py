"""Which files of an answer are graded: the allow-listed sources laid over the pristine repository.

Tests and configuration always come from the task. What an answer changed of them is dropped, and
said: an attempt is worth knowing even where it changed nothing.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from domain.verifiers.base import shown
from domain.verifiers.strict_json import NotStrictJson, parse_strict_object

MAX_FILES = 200
MAX_BYTES = 2 << 20
_STEERING = frozenset(
    [
        "conftest.py",
        "pytest.ini",
        "setup.cfg",
        "setup.py",
        "tox.ini",
        "pyproject.toml",
        "noxfile.py",
        "sitecustomize.py",
        "usercustomize.py",
        "run_tests.py",
        "checks.py",
        ".coveragerc",
    ]
)
_FENCE = re.compile(r"```(?:python|py)?[ \t]*\r?\n(?P<body>.*?)```", re.DOTALL)
PARAMS = {
    "sources": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
    "path": {"type": "string", "minLength": 1},
}
FILES = {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": MAX_FILES}


@dataclass(frozen=True)
class Graded:
    """``files`` go into the grading sandbox. ``meddling`` names tests, configuration and other
    steering files that the answer added, changed or deleted; ``trouble`` says why there is no answer."""

    files: dict[str, str]
    meddling: tuple[str, ...] = ()
    trouble: str = ""


def graded_files(
    pristine: Mapping[str, str],
    protected: Mapping[str, str],
    answer: Mapping[str, str],
    sources: Sequence[str],
) -> Graded:
    """``pristine`` with every allow-listed source as the answer left it: changed, added or deleted.

    ``protected`` are tests shown to the solver, kept for telling whether they were touched.
    """
    allowed = {path: text for path, text in answer.items() if _allowed(path, sources, protected)}
    kept = {path: text for path, text in pristine.items() if not _allowed(path, sources, protected)}
    files = {**kept, **allowed}
    if len(files) > MAX_FILES or sum(len(text) for text in files.values()) > MAX_BYTES:
        return Graded(dict(pristine), trouble="The repository became too large to grade.")
    shipped = {**kept, **protected}
    touched = {path for path, text in shipped.items() if path in answer and answer[path] != text}
    deleted = {path for path in shipped if path not in answer}
    added = {path for path in answer if path not in shipped and _steers(path)}
    return Graded(files, tuple(sorted(touched | deleted | added)))


def files_in_text(answer: str, path: str = "") -> dict[str, str]:
    """The files that a text answer brings: with ``path`` that one file, the content of the answer's
    one code fence or the whole of it; else one JSON object ``{"files": {path: text}}``.

    Raises ``NotStrictJson``.
    """
    if path:
        blocks = _FENCE.findall(answer)
        return {path: blocks[0] if len(blocks) == 1 else answer}
    files = parse_strict_object(answer, fence=True).get("files")
    if not isinstance(files, dict) or not all(isinstance(text, str) for text in files.values()):
        raise NotStrictJson("The answer is no JSON object with files as text.")
    return files


def roots(files: Mapping[str, Any]) -> tuple[str, ...]:
    """Names that ``import`` can start with, for Python files laid out from the repository's root."""
    names = {PurePosixPath(path).parts[0] for path in files if path.endswith(".py")}
    return tuple(sorted(name.removesuffix(".py") for name in names))


def said(paths: Sequence[str]) -> str:
    return ", ".join(shown(path, 60) for path in paths[:5])


def _allowed(path: str, sources: Sequence[str], protected: Mapping[str, str]) -> bool:
    if path in protected or _steers(path) or _tests(path) or not _inside(path):
        return False
    return any(_matches(path, pattern) for pattern in sources)


def _matches(path: str, pattern: str) -> bool:
    """Glob by folder: ``*`` stays within one part of the path."""
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def _inside(path: str) -> bool:
    return not any(part in ("", ".", "..") or "\0" in part for part in path.split("/"))


def _steers(path: str) -> bool:
    """Whether an interpreter or a test runner would act on this file by its name alone."""
    name = PurePosixPath(path).name.lower()
    return name in _STEERING or name.endswith((".pth", ".so"))


def _tests(path: str) -> bool:
    parts = [part.lower() for part in PurePosixPath(path).parts]
    if set(parts[:-1]) & {"tests", "test", "__pycache__"}:
        return True
    return parts[-1].startswith("test_") or parts[-1].endswith(("_test.py", ".pyc"))
