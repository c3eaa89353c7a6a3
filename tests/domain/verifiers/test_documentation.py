"""What docs/verifiers.md shows is true: every example is a sound specification whose answer passes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "verifiers.md").read_text(encoding="utf-8")
EXAMPLES = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["kind"])
def test_the_answer_of_every_example_passes_and_no_answer_fails(judge: Any, example: dict[str, Any]) -> None:
    kind, params, reference = example["kind"], example["params"], example["reference"]

    verdict = judge(kind, reference, example["answer"], example.get("evidence"), **params)

    assert verdict.state == "passed", verdict.reasons
    assert judge(kind, reference, "", example.get("evidence"), **params).state == "failed"


def test_every_kind_that_reads_an_answer_has_an_example() -> None:
    assert {example["kind"] for example in EXAMPLES} >= {
        "exact", "numeric", "regex", "json_fields", "json_schema", "accounting", "table", "rules",
        "ticket", "graph",
    }  # fmt: skip
