"""Batches of stored answers, judged without a model."""

import json
from typing import Any

from artifacts import ArtifactStore
from domain.contracts import RunVerifyBatch, TaskSpec, VerifierSpec
from workers import verify


class Ctx:
    def __init__(self, store: ArtifactStore) -> None:
        self.store = store
        self.seen: list[dict[str, Any]] = []

    def progress(self, values: dict[str, Any]) -> None:
        self.seen.append(values)


def task(kind: str, reference: Any, **params: Any) -> dict[str, Any]:
    spec = TaskSpec(
        id=f"t-{kind}", family="f", messages=({"role": "user", "content": "?"},),
        verifier=VerifierSpec(kind=kind, params=params), reference=reference,
    )  # fmt: skip
    return spec.model_dump(mode="json")


def run(store: ArtifactStore, items: list[dict[str, Any]], repeats: int = 3):  # type: ignore[no-untyped-def]
    ctx = Ctx(store)
    message = RunVerifyBatch(items_digest=store.put_jsonl(items), repeats=repeats)
    result = verify.run_verify_batch(message, ctx)
    return result, list(store.iter_jsonl(result.results_digest)), ctx


def test_every_answer_is_judged_in_order_and_repeated(store: ArtifactStore) -> None:
    numeric = task("numeric", 14)

    result, rows, ctx = run(store, [{"task": numeric, "answer": "14"}, {"task": numeric, "answer": "15"}])

    assert [row["states"] for row in rows] == [["passed"] * 3, ["failed"] * 3]
    assert rows[1]["reasons"]
    assert result.counts == {"passed": 3, "failed": 3}
    assert ctx.seen[-1] == {"done": 2, "total": 2}


def test_broken_sandbox_is_an_error_and_never_a_pass(store: ArtifactStore, monkeypatch) -> None:
    async def down(task: TaskSpec, answer: str) -> dict[str, Any]:
        return {"status": "infra_error", "detail": "no namespaces"}

    monkeypatch.setattr(verify, "collectors_with", lambda judges: {"python_calls": down})
    python = task("python_tests", {"calls": [{"args": [1], "expected": 1}]}, entry_point="f")

    _, rows, _ = run(store, [{"task": python, "answer": "def f(x):\n    return x"}])

    assert rows[0]["states"] == ["error"] * 3
    assert "no namespaces" in rows[0]["reasons"][0]


def test_turns_are_played_through_the_environment(store: ArtifactStore) -> None:
    order = {"customer": "C-1", "status": "delivered", "items": [], "paid": 50.0, "refunded": 0}
    checks = {"checks": [{"path": "/orders/orders/O-1/refunded", "equals": 20.0}]}
    refund = task("end_state", checks, allow=["/orders/refunds"]) | {
        "environment": "tools",
        "environment_params": {
            "state": {
                "now": "2026-01-05T09:00:00",
                "orders": {"customers": {}, "orders": {"O-1": order}, "refunds": []},
            }
        },
    }
    arguments = {"order": "O-1", "amount": 20.0, "reason": "damaged"}
    done = [json.dumps({"tool": "refund_order", "arguments": arguments}), "It is refunded."]
    items = [
        {"task": refund, "answer": "", "turns": done},
        {"task": refund, "answer": "", "turns": ["It is refunded."]},
        {"task": refund, "answer": "It is refunded.", "turns": []},
    ]

    _, rows, _ = run(store, items, repeats=2)

    assert [row["states"] for row in rows] == [["passed"] * 2, ["failed"] * 2, ["failed"] * 2]


def test_the_hidden_verifier_stays_out_of_the_gauntlet(store: ArtifactStore) -> None:
    hidden = {"verifier": {"kind": "numeric", "params": {}}, "reference": 15}
    numeric = task("numeric", 14) | {"hidden": hidden}

    _, rows, _ = run(store, [{"task": numeric, "answer": "14"}])

    assert rows[0] == {"states": ["passed"] * 3, "reasons": []}


def test_kept_evidence_comes_back_with_scores_and_an_error_has_neither_verdict_nor_score(
    store: ArtifactStore, monkeypatch
) -> None:
    async def judgements(task: TaskSpec, answer: str) -> dict[str, Any]:
        if "down" in answer:
            return {"status": "infra_error", "detail": "judge: unreachable"}
        entry = {"prompt": "rubric", "model": "", "reply": '{"score": 0.8, "pass": true}'}
        return {"status": "ok", "judgements": [entry]}

    monkeypatch.setattr(verify, "collectors_with", lambda judges: {"judgements": judgements})
    asked = task("judge", None, criteria=["It is polite."], prompts=["rubric"])
    items = [{"task": asked, "answer": "We gladly come."}, {"task": asked, "answer": "The judge is down."}]
    message = RunVerifyBatch(items_digest=store.put_jsonl(items), repeats=1, keep_evidence=True)

    result = verify.run_verify_batch(message, Ctx(store))

    good, lost = store.iter_jsonl(result.results_digest)
    assert (good["states"], good["scores"]) == (["passed"], [0.8])
    assert good["evidence"]["judgements"]["judgements"][0]["reply"] == '{"score": 0.8, "pass": true}'
    assert (lost["states"], lost["scores"]) == (["error"], [None])
    assert "unreachable" in lost["reasons"][0]
