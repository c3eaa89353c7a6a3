"""``annotations``: arguments and results get types. ``modern_syntax``: old ways of saying types and
texts become the ways of today's Python."""

import random
import re

from packs.code_standards.bank import Plain, plain
from packs.code_standards.standard import Piece, drafted, indented
from packs.coding.draft import Draft

_OLD = {"list": "List", "dict": "Dict", "tuple": "Tuple"}


def annotations(rng: random.Random) -> Draft:
    base = plain(rng)
    body = indented(base.body)
    half = ", ".join(
        f"{name}: {kind}" if number == 0 else name for number, (name, kind, _) in enumerate(base.params)
    )
    clean = f"def {base.name}({base.typed}) -> {base.returns}:\n{body}"
    return drafted(
        Piece(
            layout=base.name,
            name=base.name,
            dirty=f"def {base.name}({base.bare}):\n{body}",
            clean=clean,
            rules=("ANN001", "ANN201", "ANN401", "F821"),
            draw=base.draw,
            planted=len(base.params) + 1,
            types={**{name: kind for name, kind, _ in base.params}, "return": base.returns},
            asks=f"{_meant(base)} Keep what it does.",
            partial={
                "only_the_first": f"def {base.name}({half}):\n{body}",
                "object": f"def {base.name}({_all_of(base, 'object')}) -> object:\n{body}",
                "any": f"from typing import Any\n\n\ndef {base.name}({_all_of(base, 'Any')}) -> Any:\n{body}",
            },
            wrong={"body_gone": f"def {base.name}({base.typed}) -> None:\n    return None\n"},
        ),
        rng,
    )


def modern_syntax(rng: random.Random) -> Draft:
    base = plain(rng)
    kinds = [kind for _, kind, _ in base.params] + [base.returns]
    label, width = rng.choice(("result", "found", "got", "value")), rng.randint(2, 9)
    shown = f"shown = str({base.name}({base.bare}))"
    old_text = rng.choice(
        (f'"{label}: {{}} ({{}})".format(shown, {width})', f'"{label}: %s (%s)" % (shown, {width})')
    )
    new_text = f'f"{label}: {{shown}} ({{{width}}})"'
    outer = f"{base.name}_text"
    typing = sorted({word for kind in kinds for word in _old_names(kind)})
    head = f"from typing import {', '.join(typing)}\n\n\n" if typing else ""
    inner = f"def {base.name}({{}}) -> {{}}:\n{indented(base.body)}\n\n"

    def source(old: bool, text: str) -> str:
        params = ", ".join(f"{name}: {_old(kind) if old else kind}" for name, kind, _ in base.params)
        returns = _old(base.returns) if old else base.returns
        body = inner.replace("{}", params, 1).replace("{}", returns, 1)
        return (
            f"{head if old else ''}{body}def {outer}({params}) -> str:\n{indented([shown, f'return {text}'])}"
        )

    return drafted(
        Piece(
            layout=f"{base.name}-{'percent' if '%' in old_text else 'format'}",
            name=outer,
            dirty=source(True, old_text),
            clean=source(False, new_text),
            rules=("F401", "F821", "UP006", "UP007", "UP031", "UP032", "UP035", "UP045"),
            draw=base.draw,
            planted=1 + 2 * sum(_old(kind) != kind for kind in kinds),
            partial={"text_left": source(False, old_text)},
            wrong={"other_label": source(False, new_text.replace(label, f"{label}s"))},
        ),
        rng,
    )


def _meant(base: Plain) -> str:
    """What a reader must know to choose the types."""
    told = "; ".join(f"{name} is {kind}" for name, kind, _ in base.params)
    return f"The types: {told}; the result is {base.returns}."


def _all_of(base: Plain, kind: str) -> str:
    return ", ".join(f"{name}: {kind}" for name, _, _ in base.params)


def _old(kind: str) -> str:
    """``list[int] | None`` as ``Optional[List[int]]``."""
    if kind.endswith(" | None"):
        return f"Optional[{_old(kind.removesuffix(' | None'))}]"
    return re.sub(r"\b(list|dict|tuple)\[", lambda found: f"{_OLD[found[1]]}[", kind)


def _old_names(kind: str) -> set[str]:
    return set(re.findall(r"\b(?:List|Dict|Tuple|Optional)\b", _old(kind)))
