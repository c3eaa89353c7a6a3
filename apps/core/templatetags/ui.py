"""The components that show something, as template tags; builtin, so pages need no {% load %}.

Each tag takes plain dicts or dataclasses. ``docs/ui-components.md`` shows every one in use;
what does something (buttons, forms, filters) is in ``controls``.
"""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from django import template
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core.ui import figures, numbers, plots, states, texts
from apps.core.ui.reading import read
from domain.cost import cost_text

register = template.Library()

_VERDICT_START = re.compile(r"^(better|worse|cannot tell( yet)?)\b[:;,.]? *", re.IGNORECASE)


# numbers as text -----------------------------------------------------------------------------


@register.filter
def percent(share: float | None, decimals: int = 0) -> str:
    """0.71 → "71 %"; None → "no data"."""
    return numbers.unbroken(numbers.percent(share, int(decimals)))


@register.filter
def ranged(share: float | None, interval: Any) -> str:
    """``{{ 0.71|ranged:interval }}`` → "71 % (64–77)"; without an interval the share alone."""
    if share is None or interval is None:
        return percent(share)
    return numbers.unbroken(numbers.ranged(share, interval.low, interval.high))


@register.filter(is_safe=True)
def unbroken(text: Any) -> str:
    """A sentence in which no line ends between a number and its "%"."""
    return numbers.unbroken(str(text))


@register.filter
def thousands(value: float | None, decimals: int = 0) -> str:
    """1204 → "1,204"; None → "–"."""
    return "–" if value is None else numbers.number(value, int(decimals))


@register.filter
def usd(cost: Decimal | float | None) -> str:
    """1.239 → "$1.24"; None → "unknown"."""
    return cost_text(Decimal(str(cost)) if isinstance(cost, float) else cost)


@register.filter
def points(difference: float | None, decimals: int = 1) -> str:
    """0.062 → "+6.2"; None → "–"."""
    return "–" if difference is None else numbers.signed(100 * difference, int(decimals))


@register.filter
def duration(seconds: float | None) -> str:
    """250 → "4 min 10 s"."""
    return numbers.duration(seconds)


@register.filter
def counted(n: int, nouns: str) -> str:
    """``{{ 3|counted:"case" }}`` → "3 cases"; give both forms as "query,queries"."""
    one, _, many = nouns.partition(",")
    return numbers.count(n, one, many)


@register.filter
def listed(value: Any) -> str:
    """A list as "a, b, c"; anything else as itself."""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


@register.simple_tag
def ago(moment: datetime | None, missing: str = "never") -> SafeString | str:
    """``<time>`` that reads "3 min ago" and keeps the exact moment as its title."""
    return _time(moment, numbers.ago(moment, timezone.now()), missing) if moment else missing


@register.simple_tag
def age(moment: datetime | None, missing: str = "–") -> SafeString | str:
    """``<time>`` that reads "2 d 4 h": how long something has waited."""
    return _time(moment, numbers.age(moment, timezone.now()), missing) if moment else missing


def _time(moment: datetime, text: str, missing: str) -> SafeString:
    local = timezone.localtime(moment) if timezone.is_aware(moment) else moment
    title = local.strftime("%d %b %Y, %H:%M:%S %Z").strip()
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), title, text)


# state, scores, lineage ----------------------------------------------------------------------


@register.simple_tag
def badge(state: Any, word: str = "") -> SafeString:
    """Icon, word and colour of a state; ``word`` replaces the state's own word."""
    return _badge(states.look_of(state, str(word)))


@lru_cache(maxsize=512)
def _badge(look: states.Look) -> SafeString:
    """A page of results has one in every row, and they are all alike."""
    return render_to_string("components/badge.html", {"look": look})


@register.inclusion_tag("components/score.html")
def score(summary: Any, plot: bool = True) -> dict[str, Any]:
    """A dot with its interval, then "71 % (64–77), n = 212, 40 sources"."""
    text = numbers.unbroken(plots.score_text(summary))
    return {"text": text, "plot": plots.score_plot(summary) if plot and summary is not None else None}


@register.simple_tag
def score_words(summary: Any) -> str:
    """Only the words of ``score``."""
    return numbers.unbroken(plots.score_text(summary))


@register.inclusion_tag("components/scores.html")
def scores(rows: Iterable[Any]) -> dict[str, Any]:
    """Several scores on one axis: ``[("3.5", summary), ...]`` or dicts with ``label`` and ``score``."""
    pairs = [
        row if isinstance(row, tuple) else (read(row, "label"), read(row, "score", "summary")) for row in rows
    ]
    return {"plot": plots.scores_plot([(str(label), summary) for label, summary in pairs])}


@register.inclusion_tag("components/difference.html")
def difference(diff: Any, sentence: bool = True) -> dict[str, Any]:
    """A paired difference around a zero line, under its verdict sentence."""
    tone = plots.difference_tone(diff)
    state = {"pass": "better", "fail": "worse"}.get(tone, "undecided")
    text = plots.difference_text(diff)
    words = plots.verdict_sentence(diff) if sentence else ""
    return {
        "plot": plots.difference_plot(diff),
        "text": text,
        "show_text": text not in words,
        # The badge says the first words already.
        "sentence": _VERDICT_START.sub("", words),
        "state": state,
    }


@register.simple_tag
def difference_words(diff: Any) -> str:
    """Only the words: "+6 points (2 to 10, paired, n = 212)"."""
    return plots.difference_text(diff)


@register.simple_tag
def verdict(diff: Any) -> str:
    """The verdict as one sentence."""
    return plots.verdict_sentence(diff)


@register.inclusion_tag("components/lineage.html")
def lineage(subject: Any, current: str = "") -> dict[str, Any]:
    """case → asset → run → version → release. ``subject`` is a node key such as
    ``versions.version:12``, an object with ``lineage_key``, or a list of nodes."""
    if isinstance(subject, list | tuple):
        nodes = list(subject)
    else:
        from apps.core.lineage import lineage_strip

        key = subject if isinstance(subject, str) else getattr(subject, "lineage_key", "")
        current = current or str(key)
        nodes = list(lineage_strip(str(key))) if key else []
    steps = [
        {
            "label": read(n, "label"),
            "url": read(n, "url"),
            "current": bool(current) and read(n, "key") == current,
        }
        for n in nodes
    ]
    return {"steps": steps}


# texts ---------------------------------------------------------------------------------------


@register.inclusion_tag("components/transcript.html")
def transcript(messages: Iterable[Any] | None, unsure: Iterable[str] = ()) -> dict[str, Any]:
    """Chat messages, masked spans marked. A message may carry ``meta`` and ``state``."""
    return {"turns": texts.turns(messages or [], unsure)}


@register.filter
def spoken(message: Any) -> str:
    """The words of one chat message, without its pictures."""
    return texts.content_text(read(message, "content", default=""))


@register.filter
def masked(text: str) -> SafeString:
    """Escaped text with pseudonyms marked."""
    return texts.masked(str(text or ""))


@register.inclusion_tag("components/code.html")
def code(text: Any, label: str = "") -> dict[str, Any]:
    """A block of mono text; dicts and lists are shown as JSON."""
    if isinstance(text, dict | list):
        text = json.dumps(text, indent=2, ensure_ascii=False, default=str)
    return {"text": "" if text is None else str(text), "label": label}


@register.inclusion_tag("components/diff.html")
def diff(
    old: str,
    new: str,
    label: str = "Difference",
    *,
    old_name: str = "",
    new_name: str = "",
    old_state: str = "",
    new_state: str = "",
) -> dict[str, Any]:
    """Line difference of two texts. With names a legend says which sign is whose, and the lines take the
    colours of the two states instead of those of gone and new."""
    sides = (("−", old_name, old_state, "gone"), ("+", new_name, new_state, "new"))
    tones = {css: states.look_of(state).tone for _, name, state, css in sides if name}
    return {
        "lines": texts.diff_lines(old or "", new or ""),
        "label": label,
        "sides": sides if old_name and new_name else (),
        "tones": tones,
    }


@register.simple_tag
def kbd(keys: str) -> SafeString:
    """Key hint: ``{% kbd "Control+Enter" %}``."""
    return texts.key_signs(keys)


@register.inclusion_tag("components/facts.html")
def facts(pairs: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Definition list; an empty value reads "–"."""
    return {"pairs": list(pairs.items()) if isinstance(pairs, Mapping) else list(pairs)}


@register.inclusion_tag("components/figure.html")
def figure(fig: Any, label: str, name: str = "", height: int = 260) -> dict[str, Any]:
    """A Plotly figure. ``label`` says in words what it shows; ``name`` keeps zoom across live updates."""
    return {"json": figures.figure_json(fig), "label": label, "name": name, "height": height}
