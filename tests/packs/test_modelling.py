"""The modelling pack: sound tasks, prompts that fit a pocket model, and every family judged for real."""

import asyncio
import json
import math
import re
from pathlib import Path

import pytest

from packs.modelling import PACK
from packs.modelling.language import SYSTEM
from packs.modelling.views import drawn
from tests.packs.seeded_checks import assert_tasks_are_sound
from workers.evidence import worker_collectors
from workers.pack_check import check_families

WEIGHTS = Path(__file__).resolve().parents[2] / "models" / "pocket" / "weights"
CANARY = "part_impossible"
FAMILIES = [family.name for family in PACK.families]


@pytest.mark.parametrize("family", FAMILIES)
def test_tasks_are_sound(family: str) -> None:
    assert_tasks_are_sound(PACK, family, count=6)


def test_every_family_passes_with_its_good_answers_only() -> None:
    """Scripts run and meshes are measured in sandboxes; the loops go through their environment."""
    checks = asyncio.run(
        check_families(
            [(PACK, family) for family in PACK.families], sample=1, seed=11, collectors=worker_collectors()
        )
    )

    for check in checks:
        good = None if check.name == CANARY else 1.0
        assert (check.gold_pass, check.noop_pass, check.bad_pass, check.errors) == (good, 0.0, 0.0, 0), check


@pytest.mark.parametrize("family", ["part_block", "part_bar"])
def test_the_simplest_families_fit_a_pocket_model(family: str) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(WEIGHTS / "tokenizer.json"))

    for task in PACK.generate(family, seed=1, count=50):
        (message,) = task.messages
        assert len(tokenizer.encode(str(message.content)).ids) < 90
        assert len(tokenizer.encode(str(PACK.gold_answer(task))).ids) < 45


def test_impossible_parts_are_marked_and_fit_into_no_box() -> None:
    for task in PACK.generate(CANARY, seed=1, count=20):
        target = task.reference["target"]

        assert task.tags == {"canary": True}
        assert PACK.gold_answer(task) == ""
        assert target["volume"] > 1.1 * math.prod(target["extents"])


def test_the_language_that_prompts_explain_is_the_one_that_runs() -> None:
    source = (Path(__file__).resolve().parents[2] / "workers/collect/inside/shapes.py").read_text()
    functions = set(re.findall(r"^def ([a-z]\w*)\(", source, re.MULTILINE))

    assert functions
    assert all(f"{name}(" in SYSTEM for name in functions)


def test_views_show_the_part_from_three_sides() -> None:
    assert drawn([(0, 0, 0, 3, 2, 1), (0, 0, 1, 1, 1, 2)]) == (
        "Front:\n#..\n#..\n###\nRight:\n#.\n#.\n##\nTop:\n###\n###"
    )


def test_loops_say_what_they_do_as_tool_calls() -> None:
    task = PACK.generate("part_volume_loop", seed=1, count=1)[0]
    turns = PACK.gold_answer(task)

    assert task.environment == "modelling"
    assert [json.loads(turn)["tool"] for turn in turns] == ["run_script", "run_script", "submit"]
    assert set(task.environment_params) == {"constraints", "max_turns"}
    assert "script" not in json.dumps(task.environment_params)


def test_the_pack_says_what_it_is() -> None:
    text = (Path(PACK.folder) / "README.md").read_text()

    assert all(f"`{family}`" in text for family in FAMILIES)
