"""Prose taken apart: sentences, words, list items, headings, and where a phrase occurs in it.

A phrase is found by its words: case, width, quotes, dashes and runs of space do not matter, and it
must begin and end at the edge of a word. Dates and amounts are given as variants by whoever asks.
"""

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

_SENTENCE_END = re.compile(r"(?<=[.!?])[)\]\"'*_]*\s+(?=[^a-zà-ÿ])|\n+")
_ABBREVIATION = re.compile(
    r"\b(?:no|nr|mr|mrs|ms|dr|approx|ca|e\.g|i\.e|incl|excl|vs|st|[a-z]|\d{1,2})\.$", re.IGNORECASE
)
_WORD = re.compile(r"[^\W_]+(?:[-'.,/:][^\W_]+)*", re.UNICODE)
_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+(?=\S)")
_HEADING = re.compile(
    r"^\s{0,3}(?:#{1,6}\s+(?P<hashed>.+?)\s*#*|\*\*(?P<bold>[^*]+?):?\*\*:?|(?P<plain>[A-Z][^.!?:|]{0,50}):)\s*$"
)
_FOLD = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-", "\u2212": "-"}
)


_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)

_HIDING = re.compile(
    r"~~(?=\S)"
    r"|<\s*/?\s*(?:del|s|strike|template|script|style|details|noscript|iframe|object|svg|title|head)\b[^>]*>"
    r"|<\s*[a-z][a-z0-9]*\s[^>]*(?:\bhidden\b|\b(?:style|class|color)\s*=)[^>]*>"
    r"|^\s{0,3}\[[^\]\n]+\]:\s*\S.*$|\]\(\s*\S*\s+[\"'(]",
    re.IGNORECASE | re.MULTILINE,
)


class Section(NamedTuple):
    """A heading and the lines under it; the text before any heading has the name ""."""

    name: str
    lines: tuple[str, ...]

    @property
    def items(self) -> tuple[str, ...]:
        """List items, without their bullets or numbers."""
        return tuple(_ITEM.sub("", line).strip() for line in self.lines if _ITEM.match(line))


@lru_cache(maxsize=512)
def folded(text: str) -> str:
    """``text`` for comparing, as a reader sees it: NFKC, one form of quotes and dashes, case folded,
    without emphasis marks, comments and characters that do not show."""
    text = _COMMENT.sub(" ", "".join(sign for sign in text if unicodedata.category(sign) != "Cf"))
    text = unicodedata.normalize("NFKC", text).translate(_FOLD).casefold()
    text = re.sub(r"[ \t\u00a0]+", " ", text.replace("**", "").replace("__", "").replace("`", ""))
    return re.sub(r" ?\n ?", "\n", text)


def hiding_markup(text: str) -> str:
    """The first markup in ``text`` by which a reader sees some of it struck out or not at all, or ""."""
    match = _HIDING.search(unicodedata.normalize("NFKC", text))
    return match.group().strip() if match else ""


def words(text: str) -> list[str]:
    """The words of ``text``, folded; ``1,234.50`` and ``don't`` are one word each."""
    return _WORD.findall(folded(text))


def mixed_words(text: str) -> list[str]:
    """Words whose letters come from several alphabets: they look like a word and are another."""
    return [word for word in words(text) if len({_alphabet(sign) for sign in word} - {""}) > 1]


def _alphabet(sign: str) -> str:
    name = unicodedata.name(sign, "") if sign.isalpha() else ""
    return next((alphabet for alphabet in ("LATIN", "CYRILLIC", "GREEK") if name.startswith(alphabet)), "")


def sentences(text: str) -> list[str]:
    """Sentences and lines of ``text`` that hold a word, in order."""
    parts: list[str] = []
    for piece in _SENTENCE_END.split(text):
        if parts and _ABBREVIATION.search(parts[-1]) and "\n" not in piece:
            parts[-1] = f"{parts[-1]} {piece}"
        else:
            parts.append(piece)
    return [part.strip() for part in parts if _WORD.search(part)]


def sections(text: str) -> list[Section]:
    """Headings (``# Name``, ``**Name**``, ``Name:`` on a line of its own) with their lines."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in text.splitlines():
        match = None if _ITEM.match(line) else _HEADING.match(line)
        if match:
            name = match["hashed"] or match["bold"] or match["plain"]
            found.append((name.strip().rstrip(":").strip("*").strip(), []))
        elif line.strip():
            found[-1][1].append(line)
    return [Section(name, tuple(lines)) for name, lines in found if name or lines]


def find_phrase(text: str, phrase: str) -> list[tuple[int, int]]:
    """Spans of ``phrase`` in ``folded(text)``."""
    flat, wanted = folded(text).replace("\n", " "), " ".join(folded(phrase).split())
    spans: list[tuple[int, int]] = []
    start = flat.find(wanted) if wanted else -1
    while start >= 0:
        end = start + len(wanted)
        if _begins(flat, start) and _ends(flat, end):
            spans.append((start, end))
        start = flat.find(wanted, start + 1)
    return spans


def _begins(text: str, start: int) -> bool:
    """Whether a word begins here; "5" does not begin in "1.5" or "-5"."""
    before = text[max(0, start - 2) : start]
    if not before or not text[start].isalnum():
        return True
    if text[start].isdigit() and (before[-1] == "-" or (before[-1] in ".,'" and before[0].isdigit())):
        return False
    return not before[-1].isalnum()


def _ends(text: str, end: int) -> bool:
    """Whether a word ends here; "5" does not end in "5.5", but it does at the end of a sentence."""
    after = text[end : end + 2]
    if not after or not text[end - 1].isalnum():
        return True
    if after[0] in ".,'" and after[1:].isdigit():
        return False
    return not after[0].isalnum()


def copied_run(text: str, source: str, longest: int) -> str:
    """The first run of more than ``longest`` words that ``text`` shares with ``source``, or ""."""
    size = longest + 1
    runs = _runs(words(source), size)
    return next((" ".join(run) for run in _listed(words(text), size) if run in runs), "")


def _runs(found: list[str], size: int) -> set[tuple[str, ...]]:
    return set(_listed(found, size))


def _listed(found: list[str], size: int) -> list[tuple[str, ...]]:
    return [tuple(found[start : start + size]) for start in range(len(found) - size + 1)]
