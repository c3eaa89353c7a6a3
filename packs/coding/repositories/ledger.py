"""A ledger: lines of text become entries, entries become balances."""

from random import Random

from packs.coding.repositories.repository import Bug, Check, Repository


def make(rng: Random) -> Repository:
    separator, comment = rng.choice(";|,"), rng.choice("#%!")
    limit, fee = rng.randint(2, 9) * 50, rng.randint(3, 25)
    files = {
        "ledger/__init__.py": '"""Entries and balances. Amounts are whole numbers of cents."""\n',
        "ledger/parsing.py": f'''"""Lines of text such as 2024-05-01{separator}rent{separator}-90000."""

SEPARATOR = "{separator}"
COMMENT = "{comment}"


def parse_line(line):
    """(day, account, amount), or None for an empty line or a comment. ValueError for anything else."""
    line = line.strip()
    if not line or line.startswith(COMMENT):
        return None
    parts = [part.strip() for part in line.split(SEPARATOR)]
    if len(parts) != 3:
        raise ValueError(f"not an entry: {{line}}")
    return parts[0], parts[1].lower(), int(parts[2])


def parse(text):
    entries = [parse_line(line) for line in text.splitlines()]
    return sorted(entry for entry in entries if entry is not None)
''',
        "ledger/balances.py": f'''"""What entries add up to."""

from ledger.parsing import parse

OVERDRAFT_LIMIT = {limit}
FEE = {fee}


def balances(text):
    """Account -> balance, accounts that add up to nothing left out."""
    found = {{}}
    for day, account, amount in parse(text):
        found[account] = found.get(account, 0) + amount
    return {{account: total for account, total in found.items() if total != 0}}


def statement(text, account):
    """(day, amount, balance after it) of each entry of one account."""
    rows, balance = [], 0
    for day, name, amount in parse(text):
        if name == account.lower():
            balance += amount
            rows.append((day, amount, balance))
    return rows


def monthly(text):
    """Month as yyyy-mm -> sum of its amounts."""
    found = {{}}
    for day, account, amount in parse(text):
        found[day[:7]] = found.get(day[:7], 0) + amount
    return found


def fees(text, account):
    """FEE for every entry after which the account is more than OVERDRAFT_LIMIT below zero."""
    return sum(FEE for day, amount, balance in statement(text, account) if balance < -OVERDRAFT_LIMIT)
''',
    }
    bugs = (
        Bug("ledger/parsing.py", "parts[1].lower()", "parts[1]", "Rent and rent are listed as two accounts."),
        Bug(
            "ledger/parsing.py",
            "if not line or line.startswith(COMMENT):",
            "if not line:",
            f"A file with a comment line ({comment} …) cannot be read.",
        ),
        Bug(
            "ledger/parsing.py",
            "return sorted(entry",
            "return list(entry",
            "Statements of unsorted files have wrong running balances.",
        ),
        Bug(
            "ledger/balances.py",
            " if total != 0}",
            " if total > 0}",
            "Accounts with debts are missing from the balances.",
        ),
        Bug(
            "ledger/balances.py",
            "rows.append((day, amount, balance))",
            "rows.append((day, balance, amount))",
            "The columns of a statement are mixed up.",
        ),
        Bug(
            "ledger/balances.py",
            "found[day[:7]] = found.get(day[:7], 0) + amount",
            "found[day[:4]] = found.get(day[:4], 0) + amount",
            "The monthly report shows whole years.",
        ),
        Bug(
            "ledger/balances.py",
            "balance < -OVERDRAFT_LIMIT",
            "balance <= OVERDRAFT_LIMIT",
            "Customers who never were in the red pay fees.",
        ),
        Bug(
            "ledger/balances.py",
            "if name == account.lower():",
            "if name == account:",
            "The statement of Cash is empty although there are entries for cash.",
        ),
    )
    accounts = ("cash", "Rent", "bank", "Cash")

    def text(r: Random) -> str:
        lines = []
        for _ in range(r.randint(3, 6)):
            day = f"202{r.randint(3, 4)}-{r.randint(1, 3):02d}-{r.randint(1, 28):02d}"
            lines.append(
                f"{day}{separator}{r.choice(accounts)}{separator}{r.choice((-1, 1)) * r.randint(1, 9) * 50}"
            )
        lines.insert(r.randint(0, 2), r.choice((f"{comment} note", "", f"{comment}x{separator}y")))
        return repr("\n".join(lines))

    module = "from ledger.balances import"
    checks = (
        Check("balances", f"{module} balances", lambda r: f"balances({text(r)})"),
        Check("statement", f"{module} statement", lambda r: f"statement({text(r)}, {r.choice(accounts)!r})"),
        Check("monthly", f"{module} monthly", lambda r: f"monthly({text(r)})"),
        Check("fees", f"{module} fees", lambda r: f"fees({text(r)}, {r.choice(accounts)!r})"),
        Check("parse", "from ledger.parsing import parse", lambda r: f"parse({text(r)})"),
        Check(
            "broken_line",
            "from ledger.parsing import parse_line",
            lambda r: f"parse_line('2024-01-0{r.randint(1, 9)}{separator}cash')",
        ),
    )
    return Repository("ledger", "a ledger kept in text files", files, bugs, checks)
