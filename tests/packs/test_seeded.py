import os
import random
import subprocess
import sys

import pytest

from packs.registry import PackFamily
from packs.seeded import Draft, SeededFamily, SeededPack


def _draw(rng: random.Random) -> Draft:
    number = rng.randrange(10_000)
    return Draft(
        prompt=f"Say {number}",
        verifier="numeric",
        params={},
        reference=number,
        gold=str(number),
        bad={"none": ""},
        layout="say",
        origin="desk",
    )


def _few(rng: random.Random) -> Draft:
    return Draft("Same", "exact", {}, "x", "x", {"none": ""}, "few", "desk")


MADE = SeededPack(
    "demo",
    (
        SeededFamily(PackFamily("say", "Say", "Say a number.", ("numeric",)), _draw),
        SeededFamily(PackFamily("few", "Few", "Always the same.", ("exact",)), _few),
    ),
)


def test_an_id_is_enough_to_make_answers_again() -> None:
    (task,) = MADE.generate("say", seed=9, count=1)
    other = MADE.generate("few", seed=1, count=1)[0].model_copy(update={"id": task.id})

    assert MADE.gold_answer(other) == str(task.reference)


def test_a_longer_list_begins_with_the_shorter_one() -> None:
    assert MADE.generate("say", seed=3, count=30)[:10] == MADE.generate("say", seed=3, count=10)


def test_reserved_tasks_are_about_one_in_eight_and_apart_from_the_others() -> None:
    reserved = {task.messages for task in MADE.generate("say", seed=1, count=40, reserved=True)}
    others = {task.messages for task in MADE.generate("say", seed=1, count=280, reserved=False)}
    mixed = [task.messages for task in MADE.generate("say", seed=1, count=320)]

    assert not reserved & others
    assert 20 <= sum(messages in reserved for messages in mixed) <= 60


def test_a_family_that_runs_out_of_prompts_says_so() -> None:
    with pytest.raises(ValueError, match="fewer than 2 distinct"):
        MADE.generate("few", seed=1, count=2)
    with pytest.raises(KeyError):
        MADE.generate("poetry", seed=1, count=1)


@pytest.mark.parametrize(
    "id", ["case-1", "demo.poetry.1.1", "other.say.1.1", "demo.say.x.1", "demo.say.1.1.1"]
)
def test_answers_exist_only_for_tasks_of_this_pack(id: str) -> None:
    (task,) = MADE.generate("say", seed=9, count=1)

    with pytest.raises(ValueError, match="not from the demo pack"):
        MADE.gold_answer(task.model_copy(update={"id": id}))


DIGEST = """
import hashlib
from packs.registry import pack_named
digest = hashlib.sha256()
for name in ("finance", "support", "knowledge"):
    pack = pack_named(name)
    for family in pack.families:
        for task in pack.generate(family.name, seed=3, count=5):
            answers = pack.gold_answer(task), dict(pack.bad_answers(task))
            digest.update((task.model_dump_json() + repr(answers)).encode())
print(digest.hexdigest())
"""


def test_an_id_is_the_same_task_in_every_process() -> None:
    seen = set()
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        ran = subprocess.run(
            [sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, check=True
        )
        seen.add(ran.stdout)

    assert len(seen) == 1
