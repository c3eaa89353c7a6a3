"""Sizes and durations: reading, writing, adding up."""

from random import Random

from packs.coding.repositories.repository import Bug, Check, Repository


def make(rng: Random) -> Repository:
    step, digits, quota = rng.choice((1000, 1024)), rng.randint(1, 2), rng.randint(2, 9)
    files = {
        "sizes/__init__.py": '"""Sizes of files and lengths of time."""\n',
        "sizes/units.py": f'''"""Sizes: 512, 20K, 3M, 1G."""

STEP = {step}
UNITS = ["", "K", "M", "G"]
DIGITS = {digits}


def read(text):
    """Bytes. ValueError for what is no size."""
    text = text.strip().upper()
    unit = text[-1:] if text[-1:].isalpha() else ""
    if unit not in UNITS:
        raise ValueError(f"unknown unit: {{unit}}")
    number = text[: len(text) - len(unit)]
    return int(float(number) * STEP ** UNITS.index(unit))


def show(count):
    """The largest unit in which the number is at least 1, with DIGITS decimals; whole bytes without."""
    power = 0
    while power < len(UNITS) - 1 and count >= STEP ** (power + 1):
        power += 1
    if power == 0:
        return str(count)
    return f"{{count / STEP**power:.{{DIGITS}}f}}{{UNITS[power]}}"
''',
        "sizes/folders.py": f'''"""Folders as {{path: size text}}."""

from sizes.units import read, show

QUOTA = "{quota}K"


def totals(files):
    """Top folder -> bytes; files outside any folder belong to "."."""
    found = {{}}
    for path, size in files.items():
        folder = path.split("/")[0] if "/" in path else "."
        found[folder] = found.get(folder, 0) + read(size)
    return found


def largest(files, count):
    """Paths of the largest files, equals by path."""
    return sorted(files, key=lambda path: (-read(files[path]), path))[:count]


def over_quota(files):
    """Folders above QUOTA with what they have, as text, by name."""
    return [(name, show(size)) for name, size in sorted(totals(files).items()) if size > read(QUOTA)]
''',
        "sizes/times.py": '''"""Lengths of time: 90s, 5m, 2h30m."""

SECONDS = {"h": 3600, "m": 60, "s": 1}


def seconds(text):
    """ValueError for what is no length of time."""
    total, number = 0, ""
    for c in text:
        if c.isdigit():
            number += c
        elif c in SECONDS and number:
            total += int(number) * SECONDS[c]
            number = ""
        else:
            raise ValueError(f"no length of time: {text}")
    if number:
        raise ValueError(f"a unit is missing: {text}")
    return total


def clock(total):
    """1:05:09; without hours 5:09."""
    hours, rest = divmod(total, 3600)
    minutes, rest = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
''',
    }
    bugs = (
        Bug("sizes/units.py", "text.strip().upper()", "text.strip()", "Sizes such as 20k are refused."),
        Bug(
            "sizes/units.py",
            "int(float(number) * STEP",
            "int(number) * int(STEP",
            "Sizes with a fraction, such as 1.5M, cannot be read.",
        ),
        Bug(
            "sizes/units.py",
            "count >= STEP ** (power + 1)",
            "count > STEP ** (power + 1)",
            f"{step} bytes are shown as {step} and not as one K.",
        ),
        Bug(
            "sizes/units.py",
            "power < len(UNITS) - 1 and ",
            "power < 1 and ",
            "Large files are shown in K only.",
        ),
        Bug(
            "sizes/folders.py",
            'path.split("/")[0] if "/" in path else "."',
            'path.split("/")[0]',
            "Single files show up as folders.",
        ),
        Bug(
            "sizes/folders.py",
            "found.get(folder, 0) + read(size)",
            "read(size)",
            "A folder is as large as its last file.",
        ),
        Bug(
            "sizes/folders.py",
            "(-read(files[path]), path)",
            "(files[path], path)",
            "The largest files are not on top of the list.",
        ),
        Bug(
            "sizes/folders.py",
            "if size > read(QUOTA)]",
            "if size >= read(QUOTA)]",
            f"Folders with exactly {quota}K are reported.",
        ),
        Bug(
            "sizes/times.py",
            'number = ""\n        else:',
            'number = "0"\n        else:',
            "Lengths such as 5m are refused.",
        ),
        Bug(
            "sizes/times.py",
            "total += int(number) * SECONDS[c]",
            "total = int(number) * SECONDS[c]",
            "2h30m is read as 30 minutes.",
        ),
        Bug(
            "sizes/times.py",
            "if number:\n",
            "if number and not total:\n",
            "2h30 is accepted, and read as two hours.",
        ),
        Bug(
            "sizes/times.py", "divmod(rest, 60)", "divmod(total, 60)", "The clock shows more than 60 minutes."
        ),
    )
    units = ("", "K", "k", "M")

    def size(r: Random) -> str:
        unit = r.choice(units)
        number = str(r.randint(1, 20)) if not unit or r.random() < 0.6 else f"{r.randint(1, 9)}.5"
        return f"{number}{unit}"

    def files_of(r: Random) -> dict[str, str]:
        paths = r.sample(("a/x.txt", "a/y.txt", "b/c/z.bin", "b/q.txt", "notes.txt", "c/m.png"), 4)
        return {path: r.choice((size(r), f"{quota}K")) for path in paths}

    def time(r: Random) -> str:
        return r.choice(("{}h{}m", "{}m{}s", "{}m", "{}s", "{}h{}", "{}h{}m{}s", "x{}m")).format(
            *(r.randint(1, 50) for _ in range(3))
        )

    checks = (
        Check(
            "read", "from sizes.units import read", lambda r: f"read({r.choice((size(r), '3T', size(r)))!r})"
        ),
        Check(
            "show",
            "from sizes.units import show",
            lambda r: (
                f"show({r.choice((step, step - 1, step**2, r.randint(1, 10**4), r.randint(10**5, 10**10)))})"
            ),
        ),
        Check("totals", "from sizes.folders import totals", lambda r: f"totals({files_of(r)})"),
        Check(
            "largest",
            "from sizes.folders import largest",
            lambda r: f"largest({files_of(r)}, {r.randint(1, 3)})",
        ),
        Check("over_quota", "from sizes.folders import over_quota", lambda r: f"over_quota({files_of(r)})"),
        Check("seconds", "from sizes.times import seconds", lambda r: f"seconds({time(r)!r})"),
        Check(
            "clock",
            "from sizes.times import clock",
            lambda r: f"clock({r.choice((r.randint(0, 3599), r.randint(3600, 40000)))})",
        ),
    )
    return Repository("sizes", "sizes of files and lengths of time", files, bugs, checks)
