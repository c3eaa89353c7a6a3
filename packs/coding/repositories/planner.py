"""A planner: clock times, meetings, free slots."""

from random import Random

from packs.coding.repositories.repository import Bug, Check, Repository


def make(rng: Random) -> Repository:
    opens, closes, least = rng.randint(7, 9) * 60, rng.randint(16, 19) * 60, rng.choice((10, 15, 20, 30, 45))
    pause = rng.choice((0, 5, 10))
    files = {
        "planner/__init__.py": '"""Meetings of one day. Times are minutes after midnight."""\n',
        "planner/clock.py": '''"""Minutes and clock faces."""


def to_minutes(text):
    """"09:30" -> 570. ValueError for what is no time of day."""
    hours, _, minutes = text.partition(":")
    value = int(hours) * 60 + int(minutes)
    if not 0 <= value < 24 * 60 or int(minutes) > 59:
        raise ValueError(f"no time of day: {text}")
    return value


def to_text(minutes):
    return f"{minutes // 60:02d}:{minutes % 60:02d}"
''',
        "planner/slots.py": f'''"""Free and busy."""

from planner.clock import to_minutes, to_text

OPENS = {opens}
CLOSES = {closes}
SHORTEST = {least}
PAUSE = {pause}


def read(meetings):
    """"09:00-10:30" texts -> sorted (start, end) pairs."""
    spans = []
    for text in meetings:
        start, _, end = text.partition("-")
        spans.append((to_minutes(start), to_minutes(end)))
    return sorted(spans)


def busy(meetings):
    """Merged spans; meetings that touch are one."""
    merged = []
    for start, end in read(meetings):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def free(meetings):
    """Texts of the free slots while open that are long enough; PAUSE after a meeting is not free."""
    found, at = [], OPENS
    for start, end in busy(meetings):
        if start - at >= SHORTEST:
            found.append((at, start))
        at = max(at, end + PAUSE)
    if CLOSES - at >= SHORTEST:
        found.append((at, CLOSES))
    return [f"{{to_text(start)}}-{{to_text(end)}}" for start, end in found]


def conflicts(meetings):
    """Pairs of indexes into the sorted meetings that overlap; touching is no conflict."""
    spans = read(meetings)
    pairs = [(i, j) for i in range(len(spans)) for j in range(i + 1, len(spans))]
    return [(i, j) for i, j in pairs if spans[j][0] < spans[i][1]]


def load(meetings):
    """Per cent of the opening hours that are busy, rounded down."""
    inside = [(max(start, OPENS), min(end, CLOSES)) for start, end in busy(meetings)]
    minutes = sum(end - start for start, end in inside if end > start)
    return minutes * 100 // (CLOSES - OPENS)
''',
    }
    bugs: tuple[Bug, ...] = (
        Bug(
            "planner/clock.py",
            "int(hours) * 60 + int(minutes)",
            "int(hours) * 100 + int(minutes)",
            "Meetings appear at strange times of day.",
        ),
        Bug(
            "planner/clock.py",
            "{minutes % 60:02d}",
            "{minutes % 60}",
            "Slots are shown as 10:5 instead of 10:05.",
        ),
        Bug("planner/clock.py", " or int(minutes) > 59", "", "A time such as 10:75 is accepted."),
        Bug(
            "planner/slots.py",
            "start <= merged[-1][1]",
            "start < merged[-1][1]",
            "Two meetings back to back are listed as two busy spans.",
        ),
        Bug(
            "planner/slots.py",
            "max(merged[-1][1], end))",
            "end)",
            "A long meeting with a short one inside it ends too early.",
        ),
        Bug(
            "planner/slots.py",
            "        if start - at >= SHORTEST:",
            "        if start - at > SHORTEST:",
            f"A gap of exactly {least} minutes is not offered.",
        ),
        Bug(
            "planner/slots.py",
            "at = max(at, end + PAUSE)",
            "at = end - PAUSE",
            "Free slots begin before a meeting is over.",
        ),
        Bug(
            "planner/slots.py",
            "spans[j][0] < spans[i][1]]",
            "spans[j][0] <= spans[i][1]]",
            "Meetings that only touch are reported as conflicts.",
        ),
        Bug(
            "planner/slots.py",
            "return sorted(spans)",
            "return spans",
            "The busy spans depend on the order in which meetings were entered.",
        ),
        Bug(
            "planner/slots.py",
            "(max(start, OPENS), min(end, CLOSES))",
            "(start, end)",
            "Meetings outside the opening hours count towards the load.",
        ),
    )
    if not pause:
        bugs = tuple(bug for bug in bugs if "PAUSE" not in bug.old)

    def meetings(r: Random) -> list[str]:
        found, last = [], r.randint(6, 12) * 60
        for _ in range(r.randint(3, 5)):
            start = r.choice((last, last + least, last + least + pause, r.randint(24, 76) * 15))
            end = min(start + r.choice((30, 45, 65, 120)), 23 * 60 + 59)
            start = min(start, end - 5)
            found.append(f"{start // 60:02d}:{start % 60:02d}-{end // 60:02d}:{end % 60:02d}")
            last = end
        r.shuffle(found)
        return found

    module = "from planner.slots import"
    checks = (
        Check("busy", f"{module} busy", lambda r: f"busy({meetings(r)})"),
        Check("free", f"{module} free", lambda r: f"free({meetings(r)})"),
        Check("conflicts", f"{module} conflicts", lambda r: f"conflicts({meetings(r)})"),
        Check("load", f"{module} load", lambda r: f"load({meetings(r)})"),
        Check(
            "minutes",
            "from planner.clock import to_minutes",
            lambda r: f"to_minutes('{r.randint(0, 25):02d}:{r.choice((0, 5, 30, 59, 60, 75)):02d}')",
        ),
        Check("text", "from planner.clock import to_text", lambda r: f"to_text({r.randint(0, 1439)})"),
    )
    return Repository("planner", "a planner for one day", files, bugs, checks)
