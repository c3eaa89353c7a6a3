"""Loops over texts and words; see ``algorithms.py``."""

import random

from packs.coding.body import Body
from packs.coding.calls import Args
from packs.coding.pipelines import WORDS


def runs(rng: random.Random) -> Body:
    least = rng.randint(2, 3)
    return (
        "s",
        f"replaces every run of at least {least} equal characters in s by the character and the length of "
        "the run, and leaves shorter runs as they are",
        f"""
    out = ""
    i = 0
    while i < len(s):
        j = i
        while j < len(s) and s[j] == s[i]:
            j += 1
        out += s[i] + str(j - i) if j - i >= {least} else s[i:j]
        i = j
    return out
""",
        ((f">= {least}", f"> {least}"), ("s[i:j]", "s[i]")),
        lambda r: ("".join(r.choice("abc") * r.randint(1, 4) for _ in range(r.randint(3, 6))),),
    )


def shift(rng: random.Random) -> Body:
    by = rng.randint(2, 23)
    return (
        "s",
        f"moves every small letter of s {by} places on in the alphabet, from z on to a, and leaves all "
        "other characters alone",
        f"""
    out = ""
    for c in s:
        if "a" <= c <= "z":
            c = chr((ord(c) - 97 + {by}) % 26 + 97)
        out += c
    return out
""",
        ((f"+ {by}", f"- {by}"), (" % 26", "")),
        lambda r: ("".join(r.choices("abcxyz mnoXY!", k=r.randint(6, 12))),),
    )


def brackets(rng: random.Random) -> Body:
    pairs = rng.sample(("()", "[]", "{}", "<>"), 2)
    opening, closing = "".join(p[0] for p in pairs), "".join(p[1] for p in pairs)
    symbols = opening + closing + "x"

    def draw(r: random.Random) -> Args:
        inner = "".join(r.choices(pairs, k=2))
        balanced = f"{pairs[0][0]}{inner}x{pairs[0][1]}{r.choice(pairs)}"
        return (balanced if r.random() < 0.5 else "".join(r.choices(symbols, k=r.randint(2, 7))),)

    return (
        "s",
        f"returns the deepest nesting of the brackets {' and '.join(pairs)} in s, or -1 when they are not "
        "balanced; other characters do not count",
        f"""
    stack = []
    deepest = 0
    for c in s:
        if c in {opening!r}:
            stack.append({closing!r}[{opening!r}.index(c)])
            deepest = max(deepest, len(stack))
        elif c in {closing!r}:
            if not stack or stack.pop() != c:
                return -1
    return -1 if stack else deepest
""",
        (("return -1 if stack else deepest", "return deepest"), ("if not stack or", "if stack and")),
        draw,
    )


def checksum(rng: random.Random) -> Body:
    weights, modulo = rng.sample(range(2, 10), 3), rng.choice((7, 9, 10, 11, 13, 97))
    return (
        "digits",
        f"multiplies the digits of a text by {weights[0]}, {weights[1]}, {weights[2]} and again from the "
        f"start, adds the products up and returns the remainder modulo {modulo}",
        f"""
    weights = {weights}
    return sum(int(d) * weights[i % 3] for i, d in enumerate(digits)) % {modulo}
""",
        (("i % 3", "(i + 1) % 3"), (f" % {modulo}", "")),
        lambda r: ("".join(r.choices("0123456789", k=r.randint(5, 12))),),
    )


def group(rng: random.Random) -> Body:
    text, key, wrong = rng.choice(
        (
            ("their length", "len(w)", "w[0]"),
            ("their first letter in lower case", "w[0].lower()", "w[0]"),
            ("their last letter", "w[-1]", "w[0]"),
            ("how many vowels (aeiou, in either case) they have",
             "sum(c in 'aeiou' for c in w.lower())", "sum(c in 'aeiou' for c in w)"),
        )
    )  # fmt: skip
    least = rng.randint(1, 3)
    return (
        "words",
        f"groups a list of words by {text}: a dict from that to the words in their order, without the "
        f"groups that have fewer than {least} words",
        f"""
    groups = {{}}
    for w in words:
        groups.setdefault({key}, []).append(w)
    return {{k: ws for k, ws in groups.items() if len(ws) >= {least}}}
""",
        ((f"({key},", f"({wrong},"), (f">= {least}", f"> {least}")),
        lambda r: (r.choices(WORDS, k=r.randint(6, 9)),),
    )
