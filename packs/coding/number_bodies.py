"""Loops over numbers, lists and matrices; see ``algorithms.py``."""

import random

from packs.coding.body import Body


def chunks(rng: random.Random) -> Body:
    size, what = rng.randint(2, 4), rng.choice(("sum", "max", "min", "len"))
    word = {"sum": "sums", "max": "largest values", "min": "smallest values", "len": "lengths"}[what]
    other = {"sum": "max", "max": "min", "min": "max", "len": "sum"}[what]
    return (
        "xs",
        f"cuts the list xs into pieces of {size}, the last one maybe shorter, and returns the {word} of "
        "the pieces",
        f"""
    return [{what}(xs[i : i + {size}]) for i in range(0, len(xs), {size})]
""",
        ((f"{what}(", f"{other}("), (f", {size})]", f" - {size}, {size})]")),
        lambda r: ([r.randint(-9, 20) for _ in range(r.randint(5, 11))],),
    )


def windows(rng: random.Random) -> Body:
    size, what = rng.randint(2, 4), rng.choice(("max", "min", "sum"))
    word = {"sum": "sum", "max": "largest value", "min": "smallest value"}[what]
    return (
        "xs",
        f"returns the {word} of every {size} neighbours in xs, from left to right (an empty list when xs "
        "is shorter)",
        f"""
    return [{what}(xs[i : i + {size}]) for i in range(len(xs) - {size} + 1)]
""",
        ((" + 1)", ")"), (f"{what}(", "len(")),
        lambda r: ([r.randint(-9, 20) for _ in range(r.randint(5, 10))],),
    )


def base(rng: random.Random) -> Body:
    base = rng.choice((2, 3, 4, 5, 6, 7, 8, 9, 12, 16))
    return (
        "n",
        f"returns the digits of the integer n (n >= 0) in base {base} as a list of integers, the most "
        "significant first",
        f"""
    digits = [n % {base}]
    while n >= {base}:
        n //= {base}
        digits.append(n % {base})
    return digits[::-1]
""",
        (("digits[::-1]", "digits"), (f">= {base}", f"> {base}")),
        lambda r: (r.choice((r.randint(0, 60), base ** r.randint(1, 3), r.randint(60, 9999))),),
    )


def merge(rng: random.Random) -> Body:
    gap = rng.randint(0, 4)
    return (
        "spans",
        "takes a list of (start, end) tuples in any order and merges those that overlap or lie at most "
        f"{gap} apart; the merged spans come back as a sorted list of tuples",
        f"""
    out = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1] + {gap}:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return out
""",
        ((f"+ {gap}", f"+ {gap} - 1"), ("max(out[-1][1], end)", "end"), ("sorted(spans)", "spans")),
        lambda r: ([(a, a + r.randint(1, 9)) for a in r.sample(range(40), r.randint(4, 6))],),
    )


def clamp(rng: random.Random) -> Body:
    low, high = rng.randint(-9, 0), rng.randint(8, 25)
    return (
        "moves",
        f"starts at 0, adds the integers of moves one by one, never leaves the range {low} to {high} (what "
        "would pass a border stops there) and returns the list of positions",
        f"""
    at = 0
    out = []
    for move in moves:
        at = max({low}, min({high}, at + move))
        out.append(at)
    return out
""",
        ((f"min({high}, at + move)", "at + move"), ("out.append(at)", "out.append(move)")),
        lambda r: ([r.randint(-12, 15) for _ in range(r.randint(4, 8))],),
    )


def pairs(rng: random.Random) -> Body:
    total = rng.randint(4, 20)
    return (
        "xs",
        f"returns how many pairs of positions i < j in xs have xs[i] + xs[j] == {total}",
        f"""
    return sum(
        1 for i in range(len(xs)) for j in range(i + 1, len(xs)) if xs[i] + xs[j] == {total}
    )
""",
        (("range(i + 1,", "range(i,"), (f"== {total}", f">= {total}")),
        lambda r: ([r.choice((r.randint(0, 10), total // 2, total - 3, 3)) for _ in range(r.randint(5, 9))],),
    )


def longest(rng: random.Random) -> Body:
    word, step, wrong = rng.choice(
        (
            ("grow strictly", "xs[i] > xs[i - 1]", "xs[i] >= xs[i - 1]"),
            ("never grow", "xs[i] <= xs[i - 1]", "xs[i] < xs[i - 1]"),
            (
                f"differ by at most {(d := rng.randint(1, 4))} from one to the next",
                f"abs(xs[i] - xs[i - 1]) <= {d}",
                f"xs[i] - xs[i - 1] <= {d}",
            ),
            ("switch between even and odd", "xs[i] % 2 != xs[i - 1] % 2", "xs[i] % 2 == xs[i - 1] % 2"),
        )
    )
    return (
        "xs",
        f"returns the length of the longest stretch of neighbours in xs that {word} (0 for an empty list)",
        f"""
    best = run = min(1, len(xs))
    for i in range(1, len(xs)):
        run = run + 1 if {step} else 1
        best = max(best, run)
    return best
""",
        ((step, wrong), ("return best", "return run")),
        lambda r: ([r.randint(0, 7) for _ in range(r.choice((0, 6, 8, 9, 10)))],),
    )


def zigzag(rng: random.Random) -> Body:
    fill = rng.randint(-3, 0)
    return (
        "a, b",
        f"takes elements of the lists a and b in turn, beginning with a, and puts {fill} where the shorter "
        "list has ended",
        f"""
    out = []
    for i in range(max(len(a), len(b))):
        out.append(a[i] if i < len(a) else {fill})
        out.append(b[i] if i < len(b) else {fill})
    return out
""",
        ((f"else {fill}", "else None"), ("max(len(a), len(b))", "min(len(a), len(b))")),
        lambda r: ([r.randint(1, 9) for _ in range(r.randint(0, 5))], r.sample(range(20), r.randint(1, 5))),
    )


def matrix(rng: random.Random) -> Body:
    text, body, wrong = rng.choice(
        (
            ("the list of the column sums", "[sum(c) for c in zip(*rows)]", "[sum(r) for r in rows]"),
            ("the rows turned into columns, as lists", "[list(c) for c in zip(*rows)]", "rows"),
            (
                "the matrix turned by 90 degrees clockwise",
                "[list(c) for c in zip(*rows[::-1])]",
                "[list(c) for c in zip(*rows)][::-1]",
            ),
            (
                "the indexes of the rows whose sum is largest",
                "[i for i, r in enumerate(rows) if sum(r) == max(map(sum, rows))]",
                "[i for i, r in enumerate(rows) if max(r) == max(map(max, rows))]",
            ),
        )
    )
    factor = rng.randint(2, 9)
    return (
        "rows",
        f"takes a matrix as a list of rows, multiplies every entry by {factor} and returns {text}",
        f"""
    rows = [[x * {factor} for x in row] for row in rows]
    return {body}
""",
        ((f"return {body}", f"return {wrong}"), (f"x * {factor}", f"x + {factor}")),
        lambda r: ([[r.randint(-4, 9) for _ in range(3)] for _ in range(r.randint(2, 4))],),
    )


def discount(rng: random.Random) -> Body:
    first, second = rng.randint(3, 6), rng.randint(8, 14)
    cut, more = rng.randint(1, 3), rng.randint(4, 6)
    return (
        "price, count",
        f"returns what count pieces cost when each piece costs price, but every piece from the "
        f"{first + 1}th on costs {cut} less and every piece from the {second + 1}th on costs {more} less "
        "instead; no piece costs less than 0",
        f"""
    total = 0
    for number in range(1, count + 1):
        less = {more} if number > {second} else {cut} if number > {first} else 0
        total += max(0, price - less)
    return total
""",
        (
            (f"> {second}", f">= {second}"),
            (f"> {first}", f">= {first}"),
            ("max(0, price - less)", "price - less"),
        ),
        lambda r: (r.randint(1, 20), r.choice((r.randint(1, 6), first, second, r.randint(6, 22)))),
    )
