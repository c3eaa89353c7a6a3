"""Text as people read it: chat turns with their masked spans, and line differences."""

import difflib
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.utils.html import conditional_escape, escape, format_html
from django.utils.safestring import SafeString, mark_safe

from apps.core.ui.reading import read

_MASK = re.compile(r"&lt;[A-Z][A-Z_]*_\d+&gt;")
_CONTEXT = 3
_MOST_PAIRS = 20_000  # of equal lines on both sides; the time grows faster than they do
_MOST_LINES = 2_000


@dataclass(frozen=True)
class Turn:
    """One chat message. ``state`` marks the turn that failed or passed; ``images`` are URLs."""

    who: str
    said: SafeString | str
    role: str = ""
    meta: str = ""
    state: str = ""
    code: bool = False
    images: tuple[str, ...] = field(default=())


def masked(text: str, unsure: Iterable[str] = ()) -> SafeString:
    """Escape ``text`` and mark pseudonyms such as ``<PERSON_1>``; ``unsure`` words are underlined."""
    html = str(escape(text))
    words = sorted({str(escape(word)) for word in unsure if word}, key=len, reverse=True)
    pattern = re.compile("|".join([_MASK.pattern, *(re.escape(word) for word in words)]))
    return mark_safe(pattern.sub(_marked, html))


def _marked(found: re.Match[str]) -> str:
    if _MASK.fullmatch(found[0]):
        return f'<span class="mask">{found[0]}</span>'
    return f'<span class="mask-unsure" title="Perhaps personal data">{found[0]}</span>'


def turns(messages: Iterable[Any], unsure: Iterable[str] = ()) -> list[Turn]:
    """Chat messages (dicts or ``ChatMessage``) as turns; tool calls become ``name(arguments)``."""
    unsure = list(unsure)
    return [_turn(message, unsure) for message in messages]


def _turn(message: Any, unsure: list[str]) -> Turn:
    role = str(read(message, "role", default="assistant"))
    content = read(message, "content", default="")
    images: tuple[str, ...] = ()
    if isinstance(content, list | tuple):
        images = tuple(url for part in content if (url := _image(part)))
    calls = [_call(call) for call in read(message, "tool_calls", default=[]) or []]
    said = "\n".join(part for part in (content_text(content), *calls) if part)
    name = read(message, "name", default="")
    return Turn(
        who=f"{role} · {name}" if name else role,
        said=masked(said, unsure),
        role=role,
        meta=str(read(message, "meta", default="")),
        state=str(read(message, "state", default="")),
        code=bool(calls) or role == "tool",
        images=images,
    )


def content_text(content: Any) -> str:
    """The words of a message's content; those of a list of parts are joined, its pictures left out."""
    if not isinstance(content, list | tuple):
        return str(content)
    return "\n".join(
        str(part.get("text", "")) for part in content if isinstance(part, dict) and "text" in part
    )


def _image(part: Any) -> str:
    """Only images that the page may load: inline data or our own addresses."""
    url = str((part.get("image_url") or {}).get("url", "")) if isinstance(part, dict) else ""
    return url if re.match(r"data:image/|/(?![/\\])", url) else ""


def _call(call: Any) -> str:
    function = read(call, "function", default=call)
    arguments = read(function, "arguments", default="")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return f"{read(function, 'name', default='tool')}({arguments})"


@dataclass(frozen=True)
class DiffLine:
    sign: str
    text: str
    css: str


def diff_lines(old: str, new: str) -> list[DiffLine]:
    """Line difference with three lines of context; a gap is one line that says how many are left out."""
    before, after = str(old).splitlines(), str(new).splitlines()
    lines: list[DiffLine] = []
    last = 0
    for group in _matcher(before, after).get_grouped_opcodes(_CONTEXT):
        start = group[0][1]
        if start > last:
            lines.append(DiffLine("…", f"{start - last} equal lines", "skip-lines"))
        for tag, a0, a1, b0, b1 in group:
            if tag == "equal":
                lines += [DiffLine(" ", line, "same") for line in before[a0:a1]]
                continue
            lines += [DiffLine("−", line, "gone") for line in before[a0:a1]]
            lines += [DiffLine("+", line, "new") for line in after[b0:b1]]
        last = group[-1][2]
    if lines and len(before) > last:
        lines.append(DiffLine("…", f"{len(before) - last} equal lines", "skip-lines"))
    if len(lines) > _MOST_LINES:
        more = DiffLine("…", f"{len(lines) - _MOST_LINES:,} more lines", "skip-lines")
        lines = [*lines[:_MOST_LINES], more]
    return lines


def _matcher(before: list[str], after: list[str]) -> difflib.SequenceMatcher[str]:
    """What is alike at both ends, and between them line by line; as one whole where the same few lines
    come again and again, as models write them: to pair those takes minutes and tells nothing."""
    matcher = difflib.SequenceMatcher(a=before, b=after, autojunk=False)
    own = Counter(before)
    if sum(own[line] * count for line, count in Counter(after).items() if line in own) <= _MOST_PAIRS:
        return matcher
    shorter = min(len(before), len(after))
    head = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    rest = range(shorter - head)
    tail = next((at for at in rest if before[-1 - at] != after[-1 - at]), shorter - head)
    a, b = len(before) - tail, len(after) - tail
    codes = [
        ("equal", 0, head, 0, head),
        ("replace", head, a, head, b),
        ("equal", a, len(before), b, len(after)),
    ]
    matcher.opcodes = [code for code in codes if code[1] < code[2] or code[3] < code[4]]  # type: ignore[attr-defined]
    return matcher


_KEY_SIGNS = {"Control": "Ctrl", "Enter": "⏎", "Backspace": "⌫", "Escape": "Esc"}


def key_signs(keys: str) -> SafeString:
    """``Control+Enter`` → Ctrl ⏎, as one <kbd>; a sequence such as ``g e`` gives one <kbd> per key."""
    parts = [
        " ".join(_KEY_SIGNS.get(key, key) for key in chord.split("+") if key) or "+"
        for chord in keys.split(" ")
    ]
    return mark_safe(" ".join(format_html("<kbd>{}</kbd>", conditional_escape(part)) for part in parts))
