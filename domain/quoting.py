"""Text of others inside a prompt of ours: quoted so that nothing in it can leave its quotation.

Every line stands behind a bar. What a chat template reads as a mark is broken up, also where it is
written with look-alikes, and what nobody can see is taken out. Role words and verdicts stay as they
are: behind a bar they are words of the text, and changing them would change what is judged.
"""

import re
import unicodedata

MAX_CHARACTERS = 20_000
_HEAD = 15_000

# Drawn as nothing, though Unicode calls some of them letters: fillers, selectors, joiners.
_INVISIBLE = frozenset(
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u2800\u3164\uffa0\ufeff"
    + "".join(map(chr, range(0xFE00, 0xFE10)))
)
_LESS, _MORE, _BAR = "<＜﹤〈⟨〈❮˂", ">＞﹥〉⟩〉❯˃", "|｜│┃￨ǀ∣⎮❘"
_NAMES = (
    "im_start|im_end|start_of_turn|end_of_turn|begin_of_text|end_of_text|bos|eos|pad|unk|s|think|system|user|"
    "assistant|tool|tool_call|tool_response|model|instructions?|human"
)
# A mark with more than three spaces in it is none; without a bound, long runs of spaces cost minutes.
_GAP = r"\s{0,3}"
_MARKS = re.compile(
    f"[{_LESS}]{_GAP}[{_BAR}]|[{_BAR}]{_GAP}[{_MORE}]"  # <|…|>, ＜｜…｜＞
    f"|[{_LESS}]{_GAP}/?{_GAP}(?:{_NAMES}){_GAP}/?{_GAP}[{_MORE}]"
    f"|[{_LESS}]{{2}}{_GAP}/?{_GAP}SYS{_GAP}[{_MORE}]{{2}}"
    rf"|[\[［【]{_GAP}/?{_GAP}(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS){_GAP}[\]］】]",
    re.IGNORECASE,
)
# Readable, and no part of any mark: neither as it stands nor in Unicode's compatibility form.
_BROKEN = str.maketrans(
    {**dict.fromkeys(_LESS, "‹"), **dict.fromkeys(_MORE, "›"), **dict.fromkeys(_BAR, "¦")}
    | {**dict.fromkeys("[［【", "("), **dict.fromkeys("]］】", ")")}
)


def quoted(text: str) -> str:
    """``text`` line by line behind bars, without invisible characters and template marks."""
    plain = "".join(map(_seen, visible(text.replace("\r\n", "\n"))))
    plain = _MARKS.sub(lambda match: match.group().translate(_BROKEN), plain)
    # splitlines also breaks at the separators of Unicode, which a model may read as a new line.
    return "\n".join(f"| {line}" for line in plain.splitlines()) or "| "


def quoted_part(text: str) -> str:
    """As ``quoted``; of more than 20,000 characters the first 15,000 and the last 5,000, with a line
    between them that stands outside the quotation and says how much is missing."""
    missing = left_out(text)
    if not missing:
        return quoted(text)
    tail = text[len(text) - (MAX_CHARACTERS - _HEAD) :]
    return f"{quoted(text[:_HEAD])}\n[{missing:,} characters are left out here.]\n{quoted(tail)}"


def left_out(text: str) -> int:
    """How many characters of ``text`` a judge does not see."""
    return max(0, len(text) - MAX_CHARACTERS)


def visible(text: str) -> str:
    """``text`` without what is drawn as nothing: format characters, fillers, tags, selectors."""
    return "".join(
        sign
        for sign in text
        if sign not in _INVISIBLE
        and unicodedata.category(sign) != "Cf"
        and not 0xE0100 <= ord(sign) <= 0xE01EF
    )


def _seen(sign: str) -> str:
    if sign in "\n\t":
        return sign
    category = unicodedata.category(sign)
    return (
        "\n"
        if sign in "\x0b\x0c\x85"
        else " "
        if category == "Cc"
        else "\ufffd"
        if category == "Cs"
        else sign
    )
