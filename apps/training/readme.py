"""A pack's README as HTML: headings, paragraphs, lists and code of plain Markdown; all else is text.

Everything is escaped before a tag is added, so that what a pack writes stays text.
"""

import re
from collections.abc import Iterator

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

_CODE = re.compile(r"`([^`]+)`")
_STRONG = re.compile(r"\*\*([^*]+)\*\*")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")  # the words stay; a path in a README leads nowhere here
_BLANK = re.compile(r"\n\s*\n")
_FENCE = re.compile(r"^```[^\n]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
_MOST = 60_000


def readme_html(text: str) -> SafeString:
    """The README without its title, "" for none."""
    parts: list[str] = []
    place = 0
    text = text[:_MOST].replace("\r\n", "\n")
    for fence in _FENCE.finditer(text):
        parts += _blocks(text[place : fence.start()])
        parts.append(f'<pre class="code" tabindex="0">{escape(fence[1])}</pre>')
        place = fence.end()
    parts += _blocks(text[place:])
    return mark_safe("\n".join(parts))


def _blocks(text: str) -> Iterator[str]:
    for block in _BLANK.split(text.strip("\n")):
        lines = block.strip().splitlines()
        if not lines:
            continue
        if heading := re.match(r"(#{1,6})\s+(.*)", lines[0]):
            if len(heading[1]) > 1:  # the title is the page's own
                yield f"<h3>{_inline(heading[2])}</h3>"
            yield from _blocks("\n".join(lines[1:]))
        elif lines[0].startswith("|"):
            yield _table(lines)
        elif re.match(r"[-*]\s", lines[0]):
            yield f"<ul>{''.join(f'<li>{_inline(item)}</li>' for item in _items(lines))}</ul>"
        else:
            yield f"<p>{_inline(' '.join(lines))}</p>"


def _items(lines: list[str]) -> list[str]:
    items: list[str] = []
    for line in lines:
        if re.match(r"\s*[-*]\s", line):
            items.append(re.sub(r"^\s*[-*]\s+", "", line))
        elif items:
            items[-1] += f" {line.strip()}"
    return items


def _table(lines: list[str]) -> str:
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in lines
        if not set(line) <= set("|-: ")
    ]
    head = "".join(f"<th>{_inline(cell)}</th>" for cell in rows[0])
    body = "".join(f"<tr>{''.join(f'<td>{_inline(cell)}</td>' for cell in row)}</tr>" for row in rows[1:])
    return f'<div class="table-wrap"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _inline(text: str) -> str:
    html = str(escape(text))
    html = _CODE.sub(r'<code class="mono">\1</code>', html)
    return _LINK.sub(r"\1", _STRONG.sub(r"<strong>\1</strong>", html))
