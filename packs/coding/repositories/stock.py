"""A store room: batches first in, first out; reordering."""

from random import Random

from packs.coding.repositories.repository import Bug, Check, Repository


def make(rng: Random) -> Repository:
    least, pack, days = rng.randint(5, 20), rng.choice((6, 8, 10, 12, 24)), rng.randint(3, 9)
    files = {
        "stock/__init__.py": '"""A store room. A batch is (arrival day, pieces, cost of a piece)."""\n',
        "stock/batches.py": '''"""First in, first out."""


def issue(batches, pieces):
    """(what is left, what the pieces cost). The oldest batches go first; ValueError for too few pieces."""
    if pieces > sum(count for day, count, cost in batches):
        raise ValueError("not enough in stock")
    left, total = [], 0
    for day, count, cost in sorted(batches):
        taken = min(count, pieces)
        pieces -= taken
        total += taken * cost
        if count > taken:
            left.append((day, count - taken, cost))
    return left, total


def value(batches):
    return sum(count * cost for day, count, cost in batches)


def mean_cost(batches):
    """Cents per piece, rounded down; 0 for an empty store."""
    count = sum(count for day, count, cost in batches)
    return value(batches) // count if count else 0
''',
        "stock/orders.py": f'''"""When and how much to order."""

from stock.batches import mean_cost

LEAST = {least}
PACK = {pack}
DAYS = {days}


def to_order(pieces, used_per_day):
    """Whole packs, so that the store lasts DAYS days and LEAST pieces remain; 0 when it does already."""
    missing = LEAST + used_per_day * DAYS - pieces
    if missing <= 0:
        return 0
    return -(-missing // PACK) * PACK


def lasts(pieces, usage):
    """Whole days that the store lasts, given the usage of each day, which repeats. None for no usage."""
    if not any(usage):
        return None
    day = 0
    while pieces >= usage[day % len(usage)]:
        pieces -= usage[day % len(usage)]
        day += 1
    return day


def budget(batches, pieces):
    """What ``pieces`` will cost at the mean cost, a tenth more for safety, rounded up to 100."""
    cost = mean_cost(batches) * pieces * 11
    return -(-cost // 1000) * 100
''',
        "stock/report.py": '''"""Figures for people."""

from stock.batches import value


def oldest(batches, today):
    """Age in days of the oldest batch that has pieces; 0 for none."""
    return max((today - day for day, count, cost in batches if count > 0), default=0)


def by_value(rooms):
    """Room names, the most valuable first, equals by name."""
    return sorted(rooms, key=lambda room: (-value(rooms[room]), room))


def moved(moves):
    """Article -> pieces after (article, pieces in or out); articles at zero left out."""
    found = {}
    for article, pieces in moves:
        found[article] = found.get(article, 0) + pieces
    return {article: pieces for article, pieces in found.items() if pieces}
''',
    }
    bugs = (
        Bug(
            "stock/batches.py",
            "in sorted(batches):",
            "in batches:",
            "Newer batches are used up before older ones when they were entered first.",
        ),
        Bug(
            "stock/batches.py",
            "pieces -= taken\n",
            "pieces = 0\n",
            "Large issues take pieces from one batch only.",
        ),
        Bug(
            "stock/batches.py",
            "(day, count - taken, cost)",
            "(day, count, cost)",
            "The store does not shrink when part of a batch is issued.",
        ),
        Bug("stock/batches.py", "if pieces > sum(", "if pieces >= sum(", "The last piece cannot be issued."),
        Bug(
            "stock/batches.py",
            "value(batches) // count if count else 0",
            "value(batches) // len(batches)",
            "The mean cost is wrong for batches of different sizes, and fails for an empty store.",
        ),
        Bug(
            "stock/orders.py",
            "-(-missing // PACK) * PACK",
            "missing // PACK * PACK",
            "Orders are a pack too small.",
        ),
        Bug(
            "stock/orders.py",
            "used_per_day * DAYS - pieces",
            "used_per_day - pieces",
            "The store runs empty before the next delivery.",
        ),
        Bug(
            "stock/orders.py",
            "while pieces >= usage[day % len(usage)]:",
            "while pieces > usage[day % len(usage)]:",
            "A store that is used up exactly on its last day is said to last a day less.",
        ),
        Bug(
            "stock/orders.py", "* pieces * 11", "* 11", "The budget does not grow with the number of pieces."
        ),
        Bug(
            "stock/report.py",
            "if count > 0), default",
            "), default",
            "Empty batches make the stock look old.",
        ),
        Bug(
            "stock/report.py",
            "(-value(rooms[room]), room)",
            "(-len(rooms[room]), room)",
            "Rooms are sorted by the number of batches.",
        ),
        Bug("stock/report.py", "found.get(article, 0) + pieces", "pieces", "Only the last movement counts."),
    )

    def batches(r: Random) -> list[tuple[int, int, int]]:
        return [
            (day, r.randint(0, 15), r.randint(1, 9) * 25) for day in r.sample(range(1, 40), r.randint(2, 4))
        ]

    def some(r: Random) -> str:
        found = batches(r)
        there = sum(count for _, count, _ in found)
        return f"{found}, {r.choice((there, there + 1, r.randint(1, max(1, there))))}"

    checks = (
        Check("issue", "from stock.batches import issue", lambda r: f"issue({some(r)})"),
        Check(
            "mean_cost",
            "from stock.batches import mean_cost",
            lambda r: f"mean_cost({r.choice(([], batches(r)))})",
        ),
        Check(
            "to_order",
            "from stock.orders import to_order",
            lambda r: f"to_order({r.randint(0, 90)}, {r.randint(0, 12)})",
        ),
        Check(
            "lasts",
            "from stock.orders import lasts",
            lambda r: (
                f"lasts({r.randint(0, 8) * 6}, {[r.randint(1, 4) * 2 for _ in range(r.randint(1, 3))]})"
            ),
        ),
        Check(
            "budget", "from stock.orders import budget", lambda r: f"budget({batches(r)}, {r.randint(1, 60)})"
        ),
        Check(
            "oldest",
            "from stock.report import oldest",
            lambda r: f"oldest({batches(r)}, {r.randint(40, 90)})",
        ),
        Check(
            "by_value",
            "from stock.report import by_value",
            lambda r: f"by_value({ {name: batches(r) for name in ('attic', 'cellar', 'hall')} })",
        ),
        Check(
            "moved",
            "from stock.report import moved",
            lambda r: f"moved({[(r.choice('abc'), r.randint(-3, 4)) for _ in range(6)]})",
        ),
    )
    return Repository("stock", "a store room", files, bugs, checks)
