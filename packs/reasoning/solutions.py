"""Answers that this pack works out itself, where a data set names none that passes.

Each takes an entry of the data set and returns an answer, or None where this entry has none that
could be found; such an entry is no task here.
"""

import itertools
import json
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

Entry = dict[str, Any]

_BOARD = 6
_RED = "A"
_STATES = 60_000  # of one traffic jam; larger ones are no task here


def boxnet(entry: Entry) -> str:
    """One box after the other, a square a step."""
    steps: list[dict[str, str]] = []
    state = {place: list(items) for place, items in entry["metadata"]["initial_state"].items()}
    targets = [
        (item, place) for place, items in state.items() for item in items if item.startswith("target_")
    ]
    for place, items in state.items():
        for box in [item for item in items if item.startswith("box_")]:
            target = next(t for t in targets if t[0] == f"target_{box[4:]}")
            targets.remove(target)
            (row, column), (to_row, to_column) = _square(place), _square(target[1])
            while (row, column) != (to_row, to_column):
                agent = f"Agent[{row}, {column}]"
                if row != to_row:
                    row += 1 if to_row > row else -1
                else:
                    column += 1 if to_column > column else -1
                steps.append({agent: f"move({box}, square[{row}, {column}])"})
            steps.append({f"Agent[{row}, {column}]": f"move({box}, {target[0]})"})
    return json.dumps(steps)


def graph_color(entry: Entry) -> str | None:
    """By trying colours vertex by vertex."""
    puzzle = entry["metadata"]["puzzle"]
    neighbours: dict[int, set[int]] = {vertex: set() for vertex in puzzle["vertices"]}
    for a, b in puzzle["edges"]:
        neighbours[a].add(b)
        neighbours[b].add(a)
    colours: dict[int, int] = {}

    def fill(left: list[int]) -> bool:
        if not left:
            return True
        vertex, rest = left[0], left[1:]
        for colour in puzzle["color_options"]:
            if all(colours.get(other) != colour for other in neighbours[vertex]):
                colours[vertex] = colour
                if fill(rest):
                    return True
                del colours[vertex]
        return False

    found = fill(sorted(neighbours, key=lambda vertex: -len(neighbours[vertex])))
    return json.dumps({str(vertex): colours[vertex] for vertex in sorted(colours)}) if found else None


def propositional_logic(entry: Entry) -> str | None:
    """The shortest statement that follows from the premises together and from none alone."""
    from reasoning_gym.logic.propositional_logic import Expression

    premises = [_table(Expression.from_string(text), entry) for text in entry["metadata"]["premises"]]
    together = [all(row) for row in zip(*premises, strict=True)]
    if not any(together):
        return None  # premises that contradict each other prove anything
    for text in _statements(entry["metadata"]["variables"]):
        says = _table(Expression.from_string(text), entry)
        if not _implies(together, says) or all(says):
            continue
        if not any(_implies(premise, says) for premise in premises):
            return text
    return None


def rubiks_cube(entry: Entry) -> str | None:
    """The scramble undone."""
    moves = entry["metadata"]["scramble_moves"].split()
    undone = [move[:-1] if move.endswith("'") else f"{move}'" for move in reversed(moves)]
    return " ".join(undone) or None


def rush_hour(entry: Entry) -> str | None:
    """A shortest list of moves, found breadth first on the board as it is shown."""
    rows = entry["question"].split("Board:\n")[1].strip().splitlines()
    cells: dict[str, list[tuple[int, int]]] = {}
    for y, x in itertools.product(range(_BOARD), repeat=2):
        if rows[y][x] not in ".x":
            cells.setdefault(rows[y][x], []).append((y, x))
    walls = frozenset((y, x) for y, x in itertools.product(range(_BOARD), repeat=2) if rows[y][x] == "x")
    names = sorted(cells)
    flat = {name: cells[name][0][0] == cells[name][1][0] for name in names}
    start = tuple(cells[name][0][1] if flat[name] else cells[name][0][0] for name in names)
    lanes = {name: cells[name][0][0] if flat[name] else cells[name][0][1] for name in names}
    sizes = {name: len(cells[name]) for name in names}

    def taken(state: tuple[int, ...]) -> set[tuple[int, int]]:
        found = set(walls)
        for name, place in zip(names, state, strict=True):
            for step in range(sizes[name]):
                found.add((lanes[name], place + step) if flat[name] else (place + step, lanes[name]))
        return found

    red = names.index(_RED)
    came: dict[tuple[int, ...], tuple[tuple[int, ...], str] | None] = {start: None}
    queue = deque([start])
    while queue and len(came) < _STATES:
        state = queue.popleft()
        if state[red] == _BOARD - sizes[_RED]:
            return _way(came, state)
        blocked = taken(state)
        for index, name in enumerate(names):
            for sign in (-1, 1):
                place = state[index]
                for steps in range(1, _BOARD):
                    edge = place + sign * steps + (sizes[name] - 1 if sign > 0 else 0)
                    cell = (lanes[name], edge) if flat[name] else (edge, lanes[name])
                    if not 0 <= edge < _BOARD or cell in blocked:
                        break
                    moved = (*state[:index], place + sign * steps, *state[index + 1 :])
                    if moved not in came:
                        came[moved] = (state, f"{name}{'+' if sign > 0 else '-'}{steps}")
                        queue.append(moved)
    return None


SOLVERS: dict[str, Callable[[Entry], str | None]] = {
    "boxnet": boxnet,
    "graph_color": graph_color,
    "propositional_logic": propositional_logic,
    "rubiks_cube": rubiks_cube,
    "rush_hour": rush_hour,
}


def _square(place: str) -> tuple[float, float]:
    row, column = place.split("_")
    return float(row), float(column)


def _way(came: dict[tuple[int, ...], tuple[tuple[int, ...], str] | None], state: tuple[int, ...]) -> str:
    moves = []
    while (step := came[state]) is not None:
        state, move = step
        moves.append(move)
    return " ".join(reversed(moves))


def _statements(variables: list[str]) -> Iterator[str]:
    literals = [text for name in variables for text in (name, f"¬{name}")]
    yield from (text for text in literals if text.startswith("¬"))
    for a, b in itertools.combinations(literals, 2):
        if a.strip("¬") != b.strip("¬"):
            yield from (f"({a} {sign} {b})" for sign in "∧∨↔")
    for (a, b), c in itertools.product(itertools.combinations(literals, 2), literals):
        if len({a.strip("¬"), b.strip("¬"), c.strip("¬")}) == 3:
            yield from (f"(({a} {sign} {b}) ∨ {c})" for sign in "∧∨")


def _table(expression: Any, entry: Entry) -> list[bool]:
    """The truth of ``expression`` under every assignment, in a fixed order."""
    names = entry["metadata"]["variables"]
    return [
        bool(expression.evaluate(dict(zip(names, values, strict=True))))
        for values in itertools.product((False, True), repeat=len(names))
    ]


def _implies(premise: list[bool], conclusion: list[bool]) -> bool:
    return all(not a or b for a, b in zip(premise, conclusion, strict=True))
