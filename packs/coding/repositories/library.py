"""A library: days on loan, fines, renewals, reservations."""

from random import Random

from packs.coding.repositories.repository import Bug, Check, Repository


def make(rng: Random) -> Repository:
    days, grace, fine, top = (
        rng.randint(10, 30),
        rng.randint(1, 4),
        rng.randint(10, 60),
        rng.randint(4, 12) * 100,
    )
    renewals, most = rng.randint(1, 4), rng.randint(3, 6)
    files = {
        "library/__init__.py": '"""Loans of a library. Days are counted from day 0."""\n',
        "library/rules.py": f'''"""The rules of the house."""

LOAN_DAYS = {days}
GRACE_DAYS = {grace}
FINE_PER_DAY = {fine}
FINE_AT_MOST = {top}
RENEWALS = {renewals}
BOOKS_AT_MOST = {most}
''',
        "library/loans.py": '''"""Due days, fines, renewals."""

from library.rules import FINE_AT_MOST, FINE_PER_DAY, GRACE_DAYS, LOAN_DAYS, RENEWALS


def due(lent, renewals=0):
    """The last day without delay. ValueError for more renewals than allowed."""
    if renewals > RENEWALS:
        raise ValueError("too many renewals")
    return lent + LOAN_DAYS * (renewals + 1)


def fine(lent, returned, renewals=0):
    """Cents for the days after the grace days; never more than the maximum."""
    late = returned - due(lent, renewals)
    if late <= GRACE_DAYS:
        return 0
    return min(FINE_AT_MOST, (late - GRACE_DAYS) * FINE_PER_DAY)


def overdue(loans, today):
    """Titles of (title, lent, returned or None) that are out and past their due day, most late first."""
    out = [(due(lent), title) for title, lent, returned in loans if returned is None]
    return [title for day, title in sorted(out) if day < today]
''',
        "library/desk.py": '''"""What the desk asks."""

from library.loans import fine
from library.rules import BOOKS_AT_MOST


def may_borrow(loans, reader):
    """Whether (reader, title, lent, returned or None) entries leave the reader a book."""
    out = [title for who, title, lent, returned in loans if who == reader and returned is None]
    return len(out) < BOOKS_AT_MOST


def debts(loans):
    """Reader -> sum of fines for (reader, title, lent, returned), readers without debts left out."""
    found = {}
    for reader, title, lent, returned in loans:
        if returned is not None:
            found[reader] = found.get(reader, 0) + fine(lent, returned)
    return {reader: cents for reader, cents in sorted(found.items()) if cents}


def queue(reservations):
    """Titles -> readers in the order they asked; (day, reader, title) entries come in any order."""
    found = {}
    for day, reader, title in sorted(reservations):
        readers = found.setdefault(title, [])
        if reader not in readers:
            readers.append(reader)
    return found
''',
    }
    bugs = (
        Bug(
            "library/loans.py",
            "(late - GRACE_DAYS) * FINE_PER_DAY",
            "late * FINE_PER_DAY",
            "Fines are charged for the grace days too.",
        ),
        Bug(
            "library/loans.py",
            "LOAN_DAYS * (renewals + 1)",
            "LOAN_DAYS * max(1, renewals)",
            "The first renewal does not move the due day.",
        ),
        Bug(
            "library/loans.py",
            "return min(FINE_AT_MOST, ",
            "return max(FINE_AT_MOST, ",
            "Everybody who is late pays the maximum.",
        ),
        Bug(
            "library/loans.py",
            "if returned is None]\n    return [title for day",
            "]\n    return [title for day",
            "Books that came back long ago are still listed as overdue.",
        ),
        Bug(
            "library/loans.py",
            "if renewals > RENEWALS:",
            "if renewals >= RENEWALS:",
            f"Readers cannot use their {renewals}. renewal.",
        ),
        Bug(
            "library/desk.py",
            "who == reader and returned is None",
            "who == reader",
            "Readers who brought everything back may not borrow.",
        ),
        Bug(
            "library/desk.py",
            "len(out) < BOOKS_AT_MOST",
            "len(out) <= BOOKS_AT_MOST",
            f"A reader walked out with {most + 1} books.",
        ),
        Bug(
            "library/desk.py",
            "found.get(reader, 0) + fine(lent, returned)",
            "fine(lent, returned)",
            "Only the last late book of a reader is charged.",
        ),
        Bug(
            "library/desk.py",
            "in sorted(reservations):",
            "in reservations:",
            "Readers who asked later get the book first.",
        ),
    )
    titles, readers = ("Dune", "Emma", "Ulysses", "Momo", "Faust"), ("ana", "bo", "cy")

    def returned(r: Random, lent: int) -> int | None:
        return r.choice((None, lent + r.randint(1, 3 * days), lent + days + grace, lent + days + grace + 1))

    def loans(r: Random) -> list[object]:
        rows: list[object] = []
        for _ in range(r.randint(3, 8)):
            lent = r.randint(0, 40)
            rows.append((r.choice(readers[:2]), r.choice(titles), lent, returned(r, lent)))
        return rows

    def out(r: Random) -> list[object]:
        return [
            (title, lent, returned(r, lent)) for title in r.sample(titles, 4) for lent in (r.randint(0, 40),)
        ]

    checks = (
        Check(
            "due",
            "from library.loans import due",
            lambda r: f"due({r.randint(0, 99)}, {r.randint(0, renewals + 1)})",
        ),
        Check(
            "fine",
            "from library.loans import fine",
            lambda r: f"fine({(d := r.randint(0, 50))}, {d + days + r.randint(-3, grace + 30)})",
        ),
        Check(
            "fine_renewed",
            "from library.loans import fine",
            lambda r: f"fine({(d := r.randint(0, 50))}, {d + 2 * days + r.randint(-3, grace + 30)}, 1)",
        ),
        Check(
            "overdue",
            "from library.loans import overdue",
            lambda r: f"overdue({out(r)}, {r.randint(20, 90)})",
        ),
        Check(
            "may_borrow", "from library.desk import may_borrow", lambda r: f"may_borrow({loans(r)}, 'ana')"
        ),
        Check(
            "full",
            "from library.desk import may_borrow",
            lambda r: (
                f"may_borrow({[('ana', t, r.randint(0, 9), None) for t in (*titles, 'Kim')[:most]]}, 'ana')"
            ),
        ),
        Check("debts", "from library.desk import debts", lambda r: f"debts({loans(r)})"),
        Check(
            "queue",
            "from library.desk import queue",
            lambda r: (
                f"queue({[(r.randint(1, 30), r.choice(readers), r.choice(titles[:2])) for _ in range(6)]})"
            ),
        ),
    )
    return Repository("library", "the loans of a library", files, bugs, checks)
