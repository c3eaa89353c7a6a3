"""Screens of an application: a field is read, switches are told, a table is added up, a button is found."""

import random

from packs.seeded import Draft
from packs.visual.canvas import Canvas

_WIDTH, _HEIGHT = 560, 340
_INK, _MUTED, _LINE, _ACCENT = "#1c1d1f", "#5d6066", "#c9c9c4", "#3b55c9"
_PEOPLE = ("Ada Brandt", "Jonas Keller", "Mira Novak", "Tom Hale", "Elif Demir", "Lena Fischer")
_CITIES = ("Ghent", "Lyon", "Porto", "Graz", "Turku", "Brno")
_OPTIONS = ("Weekly report", "Dark theme", "Sound", "Two-step login", "Auto-save", "Beta features",
            "Shared calendar", "Offline mode")  # fmt: skip
_STATES = ("Open", "Paid", "Overdue")
_BUTTONS = ("Save", "Cancel", "Export", "Delete", "Share", "Archive", "Print", "Copy")


def field(rng: random.Random) -> Draft:
    """One of six fields of a form is asked for."""
    day = f"{rng.randint(1, 28):02d}.{rng.randint(1, 12):02d}.2026"
    due = f"{rng.randint(1, 28):02d}.{rng.randint(1, 12):02d}.2027"
    values = {
        "Order number": f"{rng.choice('ABCDEFGH')}-{rng.randint(1000, 9999)}",
        "Customer": rng.choice(_PEOPLE),
        "City": rng.choice(_CITIES),
        "Order date": day,
        "Delivery date": due,
        "Amount": f"{rng.randint(100, 999)}.{rng.randint(10, 99)}",
    }
    canvas = _window("Order")
    for at, (name, value) in enumerate(values.items()):
        x, y = (24 if at % 2 == 0 else 292), 66 + 84 * (at // 2)
        canvas.text((x, y), name, size=12, colour=_MUTED)
        canvas.box((x, y + 12, x + 244, y + 44), fill="white", outline=_LINE, radius=4)
        canvas.text((x + 10, y + 28), value, size=14)
    asked = rng.choice(list(values))
    others = [value for name, value in values.items() if name != asked]
    return Draft(
        prompt=f"What does the field “{asked}” hold? Answer with its content only.",
        verifier="exact",
        params={"normalize": True},
        reference=values[asked],
        gold=values[asked],
        bad=dict(zip(("another field", "a third field", "the label"), [*others[:2], asked], strict=True)),
        layout="form",
        origin=asked,
        image=canvas.png,
        image_key=f"{values} {asked}",
    )


def switches(rng: random.Random) -> Draft:
    """Which of six switches are on, from top to bottom."""
    names = rng.sample(_OPTIONS, 6)
    on = set(rng.sample(names, rng.randint(2, 4)))
    canvas = _window("Preferences")
    for at, name in enumerate(names):
        y = 70 + 42 * at
        canvas.text((24, y), name, size=14)
        canvas.line([(24, y + 21), (_WIDTH - 24, y + 21)], "#e8e8e4")
        canvas.box(
            (_WIDTH - 68, y - 11, _WIDTH - 26, y + 11), fill=_ACCENT if name in on else "#b5b5b0", radius=11
        )
        knob = _WIDTH - 37 if name in on else _WIDTH - 57
        canvas.ellipse((knob - 9, y - 9, knob + 9, y + 9), fill="white")
    right = ", ".join(name for name in names if name in on)
    return Draft(
        prompt="Which options are switched on? Answer with their names from top to bottom, with a comma and "
        "a space between them.",
        verifier="exact",
        params={"normalize": True},
        reference=right,
        gold=right,
        bad={
            "those that are off": ", ".join(name for name in names if name not in on),
            "all": ", ".join(names),
            "one left out": ", ".join([name for name in names if name in on][:-1]),
        },
        layout="switches",
        origin=str(len(on)),
        image=canvas.png,
        image_key=f"{names} {sorted(on)}",
    )


def table_sum(rng: random.Random) -> Draft:
    """The amounts of the rows in one state, added up."""
    rows = [(name, rng.choice(_STATES), rng.randint(11, 99)) for name in rng.sample(_PEOPLE, 6)]
    asked = rng.choice([state for _, state, _ in rows])
    canvas = _window("Invoices")
    columns = (24, 250, _WIDTH - 30)
    for x, name, anchor in zip(
        columns, ("Customer", "State", "Amount, EUR"), ("lm", "lm", "rm"), strict=True
    ):
        canvas.text((x, 62), name, size=12, colour=_MUTED, anchor=anchor)  # type: ignore[arg-type]
    for at, (name, state, amount) in enumerate(rows):
        y = 94 + 38 * at
        canvas.line([(24, y - 19), (_WIDTH - 24, y - 19)], "#e2e2df")
        canvas.text((columns[0], y), name, size=14)
        canvas.text((columns[1], y), state, size=14)
        canvas.text((columns[2], y), str(amount), size=14, anchor="rm")
    right = sum(amount for _, state, amount in rows if state == asked)
    total = sum(amount for _, _, amount in rows)
    return Draft(
        prompt=f"What is the total of the invoices whose state is “{asked}”? Answer with the number only.",
        verifier="numeric",
        params={},
        reference=right,
        gold=str(right),
        bad={
            "one too many": str(right + 1),
            "all the others": str(total - right if total != 2 * right else total),
            "number of rows": str(sum(state == asked for _, state, _ in rows)),
        },
        layout="table",
        origin=asked,
        image=canvas.png,
        image_key=f"{rows} {asked}",
    )


def point(rng: random.Random) -> Draft:
    """Where a button is, in pixels; right is what lies within half its height of its middle."""
    names = rng.sample(_BUTTONS, 5)
    canvas = _window("Document")
    width, height = 84, 32
    cells = rng.sample([(column, row) for column in range(4) for row in range(4)], len(names))
    middles: dict[str, tuple[int, int]] = {}
    for name, (column, row) in zip(names, cells, strict=True):
        x, y = 76 + 136 * column + rng.randint(-14, 14), 84 + 64 * row + rng.randint(-8, 8)
        canvas.box(
            (x - width / 2, y - height / 2, x + width / 2, y + height / 2),
            fill="white",
            outline=_LINE,
            radius=4,
        )
        canvas.text((x, y), name, size=13, anchor="mm")
        middles[name] = (x, y)
    asked = names[0]
    x, y = middles[asked]
    return Draft(
        prompt=f"The picture is {_WIDTH} pixels wide and {_HEIGHT} high. Where is the middle of the button "
        f"“{asked}”? Answer with one JSON object with the keys x and y, in pixels from the top left corner.",
        verifier="json_fields",
        params={"fields": {"x": "number", "y": "number"}, "tolerance": height / 2},
        reference={"x": x, "y": y},
        gold=_at(x, y),
        bad={
            "another button": _at(*middles[names[1]]),
            "axes swapped": _at(y, x) if abs(x - y) > height else _at(x + width, y),
            "middle of the picture": _at(_WIDTH + 1, _HEIGHT + 1),
        },
        layout="buttons",
        origin=asked,
        image=canvas.png,
        image_key=f"{middles} {asked}",
    )


def _at(x: int, y: int) -> str:
    return f'{{"x": {x}, "y": {y}}}'


def _window(title: str) -> Canvas:
    canvas = Canvas(_WIDTH, _HEIGHT, "#f7f7f5")
    canvas.box((0, 0, _WIDTH, 38), fill="#e9e9e6")
    canvas.text((18, 19), title, size=15, colour=_INK)
    for at in range(3):
        x = _WIDTH - 22 - 20 * at
        canvas.ellipse((x - 5, 14, x + 5, 24), fill="#b5b5b0")
    return canvas
