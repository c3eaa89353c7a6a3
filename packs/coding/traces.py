"""``code_trace``: what does this program print? And ``trace_simple``, the same for one short line."""

import random
from collections.abc import Callable

from domain.contracts.tasks import VerifierSpec
from packs.coding.draft import Draft
from packs.coding.own_code import printed

_WORDS = ("cat", "dog", "sun", "map", "key", "box", "red", "sky", "ink", "oak")


def draft(rng: random.Random) -> Draft:
    """A program of five to twelve lines with one to three printed lines."""
    layout = rng.choice(tuple(_PROGRAMS))
    source = _PROGRAMS[layout](rng)
    return _task(f"What does this Python program print?\n\n{source}\n", source, layout, max_tokens=96)


def simple(rng: random.Random) -> Draft:
    """One line that prints a value; made for very small models."""
    layout = rng.choice(tuple(_LINES))
    source = _LINES[layout](rng)
    return _task(f"Output of {source}", source, layout, max_tokens=24)


def _task(prompt: str, source: str, layout: str, *, max_tokens: int) -> Draft:
    output = printed(source)
    lines = output.splitlines()
    wrong = {
        "changed": _changed(output),
        "echo": source,
        "more": f"{output}\n{lines[-1]}0",
        "repr": repr(output),
    }
    return Draft(
        prompt=prompt if max_tokens < 48 else f"{prompt}\nAnswer with its output only.",
        verifier=VerifierSpec(kind="exact"),
        reference=output,
        gold=output,
        bad={name: text for name, text in wrong.items() if text.strip() != output.strip()},
        origin=layout,
        max_tokens=max_tokens,
    )


def _changed(output: str) -> str:
    """The last number one too large, or the text spelt backwards with a mark."""
    head, _, last = output.rpartition(" ") if " " in output.splitlines()[-1] else ("", "", output)
    if last.lstrip("-").isdecimal():
        return f"{head} {int(last) + 1}".strip()
    return f"{output[::-1]}?"


def _loop(rng: random.Random) -> str:
    a, b, n, m, k = (
        rng.randint(1, 9),
        rng.randint(2, 5),
        rng.randint(4, 7),
        rng.randint(2, 3),
        rng.randint(7, 30),
    )
    first, second = rng.sample((f"total += i * {b}", f"total -= {a}", "total += total // 2", "total *= 2"), 2)
    return (
        f"total = {a}\nfor i in range({n}):\n    if i % {m} == {rng.randrange(m)}:\n        {first}\n"
        f"    elif total > {k}:\n        {second}\n    else:\n        total += 1\nprint(total)"
    )


def _while(rng: random.Random) -> str:
    n, d, a = rng.randint(20, 99), rng.randint(2, 4), rng.randint(1, 5)
    return (
        f"n = {n}\nsteps = 0\nwhile n > {a}:\n    if n % {d} == 0:\n        n //= {d}\n"
        f"    else:\n        n -= {a}\n    steps += 1\nprint(steps, n)"
    )


def _lists(rng: random.Random) -> str:
    xs, i, j = [rng.randint(1, 20) for _ in range(5)], rng.randrange(4), rng.randint(1, 9)
    act = rng.choice((f"xs.insert({i}, {j})", "xs.reverse()", "xs.sort()", f"xs[{i}] += {j}", f"del xs[{i}]"))
    other = rng.choice(
        (f"xs.append(xs[{i}] * 2)", f"xs = xs[{i}:] + xs[:{i}]", "xs[0], xs[-1] = xs[-1], xs[0]")
    )
    return f"xs = {xs}\nys = xs\n{act}\n{other}\nprint(xs)\nprint(len(ys), sum(ys[:2]))"


def _dicts(rng: random.Random) -> str:
    words = rng.choices(_WORDS[:4], k=6)
    key = rng.choice(("w", "w[0]", "len(w)", "w[-1]"))
    return (
        f"words = {words}\nseen = {{}}\nfor i, w in enumerate(words):\n"
        f"    seen[{key}] = seen.get({key}, 0) + i\n"
        f"for k in sorted(seen, key=str):\n    print(k, seen[k])"
    )


def _text(rng: random.Random) -> str:
    word, n, mark = "".join(rng.sample(_WORDS, 2)), rng.randint(2, 3), rng.choice("-*.")
    return (
        f's = "{word}"\nout = ""\nfor i, c in enumerate(s):\n    if i % {n} == 0:\n        c = c.upper()\n'
        f'    elif c in "aeiou":\n        c = "{mark}"\n'
        f"    out = {rng.choice(('out + c', 'c + out'))}\nprint(out)"
    )


def _recursion(rng: random.Random) -> str:
    a, b, n, k = rng.randint(1, 3), rng.randint(1, 4), rng.randint(7, 14), rng.randint(2, 3)
    return (
        f"def f(n):\n    if n < {k}:\n        return n + {a}\n"
        f"    return f(n - {k}) + {rng.choice((f'{b} * n', f'f(n // {k})', f'n % {b + 1}'))}\n\n"
        f"print(f({n}))\nprint(f({n + b}) - f({n}))"
    )


def _closure(rng: random.Random) -> str:
    a, b = rng.randint(1, 6), rng.randint(2, 5)
    return (
        f"def add(x, xs=[]):\n    xs.append(x * {b})\n    return sum(xs)\n\n"
        f"print(add({a}))\nprint(add({a + b}))\nprint(add({b}, [{a}]), add(1))"
    )


def _nested(rng: random.Random) -> str:
    n, m, k = rng.randint(3, 5), rng.randint(3, 5), rng.randint(2, 4)
    return (
        f"count = 0\nfor i in range(1, {n + 1}):\n    for j in range(i, {m + 1}):\n"
        f"        if (i + j) % {k} == 0:\n            {rng.choice(('continue', 'break'))}\n"
        f"        count += {rng.choice(('j', 'i', '1'))}\nprint(count)"
    )


_PROGRAMS: dict[str, Callable[[random.Random], str]] = {
    "loop": _loop,
    "while": _while,
    "lists": _lists,
    "dicts": _dicts,
    "text": _text,
    "recursion": _recursion,
    "closure": _closure,
    "nested": _nested,
}


def _pair(rng: random.Random) -> tuple[int, int]:
    a, b = rng.sample(range(1, 60), 2)
    return a, b


def _word(rng: random.Random) -> str:
    return rng.choice(_WORDS) + rng.choice(("", *_WORDS))


_LINES: dict[str, Callable[[random.Random], str]] = {
    "larger": lambda r: "print(max({}, {}))".format(*_pair(r)),
    "smaller": lambda r: "print(min({}, {}))".format(*_pair(r)),
    "repeat": lambda r: f"print('{r.choice(_WORDS)}' * {r.randint(2, 4)})",
    "upper": lambda r: f"print('{_word(r)}'.upper())",
    "join": lambda r: f"print('{r.choice(_WORDS)}' + '{_word(r)}')",
    "item": lambda r: f"print({r.sample(range(1, 60), 3)}[{r.randrange(3)}])",
    "ends": lambda r: f"print('{_word(r)}'[{r.choice((0, -1))}])",
    "compare": lambda r: "print({} {} {})".format(*(p := _pair(r))[:1], r.choice("<>"), p[1]),
    "sorted": lambda r: f"print(sorted({r.sample(range(1, 60), 3)}))",
    "slice": lambda r: f"print({r.sample(range(1, 60), 4)}[{r.choice(('1:3', ':2', '2:', '::2'))}])",
    "sum": lambda r: f"print({r.randint(1, 20)} + {r.randint(1, 9)})",
    "length": lambda r: f"print(len('{_word(r)}'))",
}
