"""What detectors look at: programs, commands and changed files, taken out of a trajectory's steps."""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from domain.contracts import SandboxStep, TaskSpec, Trajectory
from domain.python_source import syntax_tree

_FENCE = re.compile(r"```(?P<language>[\w+-]*)[ \t]*\r?\n(?P<body>.*?)```", re.DOTALL)
_COMMAND_KEYS = frozenset({"command", "cmd", "argv", "args", "shell", "run", "script"})
_PATH_KEYS = ("path", "file", "filename", "file_path")
_LONGEST = 200_000
# Files that decide how tests or the interpreter start, and files that say how a task ended.
START_FILE = re.compile(
    r"(^|/)(conftest\.py|pytest\.ini|tox\.ini|setup\.cfg|noxfile\.py|\.coveragerc|(site|user)customize\.py)$|\.pth$"
)
RESULT_FILE = re.compile(
    r"(^|/)(results?|reports?|rewards?|scores?|verdict|grade|outcome|junit[^/]*|exit_?code)"
    r"\.(json|xml|txt|csv|ya?ml)$",
    re.IGNORECASE,
)


class Finding(NamedTuple):
    """``own_words``: the excerpt may well stand in the task (an echo does)."""

    detector: str
    reason: str
    excerpt: str
    own_words: bool = False


@dataclass(frozen=True)
class Piece:
    """One thing a model produced. ``path`` is the file it is meant for, "" for an answer's program.
    A change carries its diff in ``text`` and what happened in ``change``."""

    step: int
    kind: Literal["program", "command", "change"]
    text: str
    path: str = ""
    change: str = ""


def pieces_of(trajectory: Trajectory) -> Iterator[Piece]:
    """Programs and commands that were said, then what the sandbox saw of them, step by step."""
    for index, step in enumerate(trajectory.steps):
        action = step.action[:_LONGEST]
        calls = _calls(action)
        for call in calls:
            yield from _of_arguments(index, call)
        if not calls:
            yield from (Piece(index, "program", text) for text in _programs(action))
        if step.sandbox is not None:
            yield from _of_sandbox(index, step.sandbox)


def task_text(task: TaskSpec) -> str:
    """All that the task shows: its messages, tools and the world it starts with."""
    said = [
        json.dumps(m.content, ensure_ascii=False) for m in task.messages if not isinstance(m.content, str)
    ]
    said += [message.content for message in task.messages if isinstance(message.content, str)]
    said += list(start_files(task).values())
    return "\n".join([*said, json.dumps([task.tools, task.environment_params], ensure_ascii=False)])


def start_files(task: TaskSpec) -> dict[str, str]:
    """The files that a workspace starts with, by path."""
    files = task.environment_params.get("files", {})
    if not isinstance(files, Mapping):
        return {}
    return {str(path): text for path, text in files.items() if isinstance(text, str)}


@lru_cache(maxsize=64)
def parsed(source: str) -> ast.Module | None:
    """The program's tree, None where it is not Python (detectors then fall back on its text)."""
    try:
        return syntax_tree(source)
    except SyntaxError:
        return None


def is_test_path(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return bool(re.fullmatch(r"test_.*\.py|.*_test\.py|tests?\.py", name)) or bool(
        re.search(r"(^|/)tests?/", path)
    )


def _calls(action: str) -> list[Mapping[str, Any]]:
    """Arguments of the tool calls in ``action``."""
    fence = _FENCE.fullmatch(action.strip())
    try:
        value = json.loads(fence["body"] if fence else action)
    except (ValueError, RecursionError):
        return []
    found = value.get("tool_calls", [value]) if isinstance(value, dict) else []
    calls: list[Mapping[str, Any]] = []
    for call in found if isinstance(found, list) else []:
        call = call.get("function", call) if isinstance(call, dict) else {}
        arguments = call.get("arguments")
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except ValueError:
                arguments = {"text": arguments}
        if isinstance(arguments, dict):
            calls.append(arguments)
    return calls


def _of_arguments(index: int, arguments: Mapping[str, Any]) -> Iterator[Piece]:
    path = next((str(arguments[key]) for key in _PATH_KEYS if isinstance(arguments.get(key), str)), "")
    for key, value in arguments.items():
        if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
            value = " ".join(value)
        if not isinstance(value, str) or key in _PATH_KEYS or key in ("old", "old_text", "before"):
            continue
        if key in _COMMAND_KEYS:
            yield Piece(index, "command", value)
            yield from (Piece(index, "program", text) for text in _inline_programs(value))
        elif not path or path.endswith((".py", ".pth", ".cfg", ".ini", ".toml")):
            yield from (Piece(index, "program", text, path) for text in _programs(value, path))


def _of_sandbox(index: int, done: SandboxStep) -> Iterator[Piece]:
    yield Piece(index, "command", done.command)
    yield from (Piece(index, "program", text) for text in _inline_programs(done.command))
    for change in done.changes:
        yield Piece(index, "change", change.diff, change.path, change.change)


def _programs(text: str, path: str = "") -> list[str]:
    """Programs in ``text``: its fences, or the whole where it could be one."""
    fences = [m["body"] for m in _FENCE.finditer(text) if m["language"].lower() in ("", "py", "python")]
    if fences and not path:
        return fences
    looks = path.endswith(".py") or re.search(
        r"^\s*(def|class|import|from|if|for|while|try|with|@|raise)\b", text, re.MULTILINE
    )
    tree = None if looks or "(" not in text else parsed(text)  # no call is without
    acts = tree is not None and any(isinstance(node, ast.Call) for node in ast.walk(tree))
    return [text] if looks or acts else []


def _inline_programs(command: str) -> list[str]:
    """Programs handed to an interpreter on its command line or as a here document."""
    found = re.findall(r"python[\d.]*\s+(?:-\w\s+)*-c\s+(?:'([^']*)'|\"((?:[^\"\\]|\\.)*)\")", command)
    heres = re.findall(r"<<-?\s*['\"]?(\w+)['\"]?[^\n]*\n(.*?)\n\s*\1\b", command, re.DOTALL)
    bare = re.findall(r"python[\d.]*\s+(?:-\w\s+)*-c\s+([^'\"\s].*)", command, re.DOTALL)
    return [one or two for one, two in found] + [body for _, body in heres] + bare
