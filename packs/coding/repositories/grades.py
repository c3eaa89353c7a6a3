"""Grades: weighted points, marks, ranks."""

from random import Random

from packs.coding.repositories.repository import Bug, Check, Repository


def make(rng: Random) -> Repository:
    weights = rng.choice(((20, 30, 50), (25, 25, 50), (10, 40, 50), (30, 30, 40)))
    borders = sorted(rng.sample(range(40, 96, 5), 4), reverse=True)
    drop, full = rng.randint(1, 2), rng.choice((20, 40, 50))
    files = {
        "grades/__init__.py": '"""Grades of a course. Points are whole numbers from 0 to 100."""\n',
        "grades/scheme.py": f'''"""How the course is graded."""

WEIGHTS = {{"homework": {weights[0]}, "project": {weights[1]}, "exam": {weights[2]}}}
BORDERS = {[(border, letter) for border, letter in zip(borders, "ABCD", strict=True)]}
DROPPED = {drop}
FULL_MARKS = {full}
''',
        "grades/points.py": '''"""From marks to points."""

from grades.scheme import DROPPED, FULL_MARKS, WEIGHTS


def percent(marks):
    """Marks out of FULL_MARKS as points, rounded half up. ValueError outside the range."""
    if not 0 <= marks <= FULL_MARKS:
        raise ValueError("marks out of range")
    return (marks * 200 + FULL_MARKS) // (2 * FULL_MARKS)


def homework(marks):
    """Mean of the points without the DROPPED worst, rounded down; 0 when nothing is left."""
    kept = sorted(percent(mark) for mark in marks)[DROPPED:]
    return sum(kept) // len(kept) if kept else 0


def total(parts):
    """Weighted points of {"homework": …, "project": …, "exam": …}, rounded down; a missing part counts 0."""
    return sum(weight * parts.get(name, 0) for name, weight in WEIGHTS.items()) // 100
''',
        "grades/report.py": '''"""Letters and lists."""

from grades.points import total
from grades.scheme import BORDERS


def letter(points):
    """The first letter whose border is reached, else F."""
    for border, name in BORDERS:
        if points >= border:
            return name
    return "F"


def ranks(results):
    """Name -> rank for {name: parts}; equal totals share the better rank, and the next rank is skipped."""
    totals = {name: total(parts) for name, parts in results.items()}
    return {name: 1 + sum(other > mine for other in totals.values()) for name, mine in totals.items()}


def distribution(results):
    """Letter -> how many have it, for letters that occur, in order of the alphabet."""
    found = {}
    for parts in results.values():
        name = letter(total(parts))
        found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items()))
''',
    }
    bugs = (
        Bug(
            "grades/points.py",
            "(marks * 200 + FULL_MARKS) // (2 * FULL_MARKS)",
            "marks * 100 // FULL_MARKS",
            "Half points are rounded down instead of up.",
        )
        if full == 40
        else Bug(
            "grades/points.py",
            "(marks * 200 + FULL_MARKS) // (2 * FULL_MARKS)",
            "marks * FULL_MARKS // 100",
            "Full marks do not give 100 points.",
        ),
        Bug(
            "grades/points.py",
            "if not 0 <= marks <= FULL_MARKS:",
            "if not 0 <= marks < FULL_MARKS:",
            "Full marks are refused.",
        ),
        Bug("grades/points.py", "[DROPPED:]", "[:-DROPPED]", "The best homework is dropped, not the worst."),
        Bug(
            "grades/points.py",
            "if kept else 0",
            "if marks else 0",
            "A student with very few homeworks breaks the report.",
        ),
        Bug(
            "grades/points.py",
            "parts.get(name, 0)",
            "parts[name]",
            "A student without an exam breaks the report.",
        ),
        Bug(
            "grades/report.py",
            "if points >= border:",
            "if points > border:",
            "Points exactly at a border get the worse letter.",
        ),
        Bug("grades/report.py", "sum(other > mine", "sum(other >= mine", "Nobody has rank 1."),
        Bug(
            "grades/report.py",
            "dict(sorted(found.items()))",
            "{name: count for name, count in found.items() if name != 'F'}",
            "The distribution hides those who failed.",
        ),
        Bug("grades/report.py", "found.get(name, 0) + 1", "1", "The distribution never counts above one."),
    )

    def parts(r: Random) -> dict[str, int]:
        found = {name: r.randint(8, 20) * 5 for name in ("homework", "project", "exam")}
        if r.random() < 0.3:
            del found[r.choice(tuple(found))]
        return found

    def results(r: Random) -> str:
        same = parts(r)
        return repr({name: r.choice((same, parts(r))) for name in ("ana", "bo", "cy", "dee")})

    checks = (
        Check(
            "percent",
            "from grades.points import percent",
            lambda r: f"percent({r.choice((full, full + 1, r.randint(0, full)))})",
        ),
        Check(
            "homework",
            "from grades.points import homework",
            lambda r: f"homework({[r.randint(0, full) for _ in range(r.randint(1, 6))]})",
        ),
        Check("total", "from grades.points import total", lambda r: f"total({parts(r)})"),
        Check(
            "letter",
            "from grades.report import letter",
            lambda r: f"letter({r.choice((*borders, *(b - 1 for b in borders), r.randint(0, 100)))})",
        ),
        Check("ranks", "from grades.report import ranks", lambda r: f"ranks({results(r)})"),
        Check(
            "distribution", "from grades.report import distribution", lambda r: f"distribution({results(r)})"
        ),
    )
    return Repository("grades", "the grades of a course", files, bugs, checks)
