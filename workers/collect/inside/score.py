"""Runs inside a sandbox with reasoning-gym: makes one entry again and scores one answer with it.

The answer is data here. Scorers that would evaluate it lose their ``eval``; the guards on the host have
already refused what is no plain answer. The entry must be the one that was asked, word for word.
"""

import re
from collections.abc import Callable
from typing import Any

# Modules whose scorers evaluate the answer for part of the credit, which is not given anyway.
_EVALUATING = (
    "algorithmic.binary_matrix",
    "algorithmic.spiral_matrix",
    "algorithmic.string_insertion",
    "games.n_queens",
)


def main() -> None:
    import contextlib
    import hashlib
    import importlib
    import io
    import json
    import os
    import random

    channel = int(os.environ.pop("FLYWHEEL_CHANNEL"))
    with open(channel, "rb", closefd=False) as reader:
        asked = json.loads(reader.readline())
    with contextlib.redirect_stdout(io.StringIO()):  # some data sets print while they are made
        import numpy
        import reasoning_gym

        for module in _EVALUATING:
            vars(importlib.import_module(f"reasoning_gym.{module}"))["eval"] = _refuse
        name, seed = asked["dataset"], asked["seed"]
        random.seed(seed)  # some programs of codeio draw from the common generators
        numpy.random.seed(seed)
        dataset = reasoning_gym.create_dataset(name, size=1, seed=seed, **asked["config"])
        entry = dataset[0]
        found = {"score": 0.0, "reason": ""}
        same = hashlib.sha256(f"{entry['question']}\n{entry['answer']}".encode()).hexdigest()[:16]
        if same != asked["entry"]:
            found["reason"] = "other entry"
        else:
            try:
                found["score"] = float(dataset.score_answer(asked["answer"], entry))
            except Exception as error:
                found["reason"] = f"The scorer could not read the answer: {type(error).__name__}."
            if found["score"] == 1.0 and name in STRICTER:
                found["reason"] = STRICTER[name](asked["answer"], entry, dataset)
                found["score"] = 0.0 if found["reason"] else 1.0
    if found["score"] != found["score"] or found["score"] in (float("inf"), float("-inf")):
        found = {"score": 0.0, "reason": "The scorer's mark is no number."}
    with open(channel, "wb", closefd=False) as writer:
        writer.write(json.dumps({"nonce": asked["nonce"], **found}).encode() + b"\n")
    while os.read(channel, 65536):  # the host has all of it when it hangs up
        pass
    os._exit(0)


def _refuse(source: object) -> None:
    raise ValueError("answers are not evaluated")


def own_numbers(answer: str, entry: dict[str, Any], dataset: Any) -> str:
    """The scorer of puzzle24 takes any four numbers."""
    used = sorted(int(number) for number in re.findall(r"\d+", answer))
    wanted = sorted(entry["metadata"]["numbers"])
    return "" if used == wanted else "Other numbers are used than those given."


def real_moves(answer: str, entry: dict[str, Any], dataset: Any) -> str:
    """The scorer of rush_hour passes over moves that are blocked; a list of all moves would solve it."""
    from reasoning_gym.games.rush_hour import Board

    board = Board(entry["metadata"]["board_config"])
    for letter, sign, steps in re.findall(r"([A-Z])([+-])(\d)", answer):
        index = ord(letter) - ord("A")
        if index >= len(board._pieces):
            return f"There is no car {letter}."
        piece = board._pieces[index]
        before, move = piece.position, int(sign + steps)
        board.move(letter, move)
        if not move or piece.position != before + move * piece.stride:
            return f"The move {letter}{sign}{steps} is blocked."
    return ""


def joint_conclusion(answer: str, entry: dict[str, Any], dataset: Any) -> str:
    """The scorer of propositional_logic takes a premise said again. A conclusion needs two of them."""
    from reasoning_gym.logic.propositional_logic import Expression

    conclusion = Expression.from_string(answer)
    if len(re.findall(r"[A-Z]", answer)) > 3:
        return "The conclusion uses more than three letters."
    for premise in entry["metadata"]["premises"]:
        if dataset._is_valid_conclusion([Expression.from_string(premise)], conclusion):
            return "The conclusion follows from a single statement."
    return ""


STRICTER: dict[str, Callable[[str, dict[str, Any], Any], str]] = {
    "puzzle24": own_numbers,
    "rush_hour": real_moves,
    "propositional_logic": joint_conclusion,
}

if __name__ == "__main__":
    main()
