"""Known personal data goes in by every way there is, and is looked for everywhere afterwards."""

import json
import logging
from pathlib import Path

import pytest
from django.apps import apps

from apps.core.crypto import encrypt_json
from apps.feedback import services
from apps.feedback.models import Capture, FailureCase, Family, FeedbackSignal, HeldExchange
from tests.apps.feedback.test_signals import row

pytestmark = pytest.mark.django_db

NAME, MAIL, CARD, KEY = (
    "Karen Lewis",
    "karen.lewis@corp.example",
    "4111 1111 1111 1111",
    "sk-live1234567890abcdEF",
)
PLANTED = (
    "Karen",
    "Lewis",
    "karen.lewis",
    "corp.example",
    "4111 1111",
    "4111111111111111",
    "sk-live1234567890",
)
TEXT = (
    f"Dear {NAME}, we wrote to {MAIL} about card {CARD}. "
    f"Authorization: Bearer {KEY}. Invoice INV-42 over 55.00 EUR."
)
ANSWER = json.dumps({"to": MAIL, "token": KEY, "card": int(CARD.replace(" ", ""))})


def messages() -> list[dict[str, object]]:
    return [
        {"role": "system", "content": f"You serve {NAME}."},
        {"role": "user", "content": [{"type": "text", "text": TEXT}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "mail", "arguments": json.dumps({"to": MAIL})},
                }
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": json.dumps({"customer": {"name": NAME, "pan": CARD}}),
        },
        {"role": "user", "content": f"My config is api_key={KEY}"},
    ]


def stored_text() -> list[tuple[str, str]]:
    """Every value of every table as text; ciphertext of what waits counts as nothing readable."""
    found = []
    for model in apps.get_models():
        for values in model._base_manager.values():
            found += [(f"{model.__name__}.{name}", _readable(value)) for name, value in values.items()]
    return found


def _readable(value: object) -> str:
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode("latin-1")
    return (
        json.dumps(value, default=str, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
    )


def leaks(texts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(place, word) for place, text in texts for word in PLANTED if word.lower() in text.lower()]


def anonymize_all() -> None:
    for capture in Capture.objects.filter(state="raw"):
        services.capture_anonymize(capture=capture)
    for signal in FeedbackSignal.objects.filter(raw__isnull=False):
        services.signal_anonymize(signal=signal)


@pytest.fixture
def everything_in(project, actor, store, caplog):
    """Personal data through captures, gateway, feedback (early and late), evals, labels and rules tried."""
    caplog.set_level(logging.DEBUG)
    exchange = {"messages": messages(), "answer": ANSWER, "correction": f"Write to {MAIL}."}
    for external_id in ("c-1", MAIL, CARD, f"order of {NAME}"):
        item = {"external_id": external_id, "cluster": external_id, "failed": True, **exchange}
        services.captures_ingest(project=project, items=[item], by=actor)
    early = {"operation": "op_1", "value": False, "comment": f"{NAME} is angry", "correction": ANSWER}
    services.signals_ingest(project=project, items=[early], by=actor)
    content = encrypt_json({"messages": messages(), "answer": ANSWER}).decode()
    services.inferences_ingest(
        [
            row(project, f"op_{n}", content=content, source=MAIL, external_id=NAME if n else "")
            for n in range(3)
        ]
    )
    services.case_capture(
        project=project,
        source="eval",
        external_id="eval:1",
        cluster=MAIL,
        content={**exchange, "reference": {"to": MAIL}, "verifier": {"kind": "exact", "params": {"x": NAME}}},
    )
    anonymize_all()
    late = {"operation": "op_1", "metric": "late", "value": -1, "comment": f"Ask {NAME} at {MAIL}, key {KEY}"}
    services.signals_ingest(project=project, items=[late], by=actor)
    anonymize_all()
    family = services.family_ensure(project=project, name="mail", verifier_kind="exact", by=actor)
    for case in FailureCase.objects.select_related("project", "capture"):
        services.case_label(
            case=case,
            kind="wrong_value",
            severity="major",
            correction=f"To {NAME} <{MAIL}>",
            note=f"Card {CARD}",
            by=actor,
        )
    services.rules_try(rules={}, text=TEXT)
    return family


def test_nothing_planted_is_stored_in_clear(everything_in, store, caplog):
    assert FailureCase.objects.count() >= 3
    assert leaks(stored_text()) == []
    assert leaks([("log", record.getMessage()) for record in caplog.records]) == []


def test_nothing_planted_reaches_tasks_artifacts_or_exports(everything_in, project, actor, store):
    family: Family = everything_in
    for case in FailureCase.objects.select_related("project", "capture").exclude(capture__source="eval"):
        services.asset_create(case=case, family=family, by=actor)
    for split in ("train", "held_out"):
        for kind in ("rl", "sft", "preference"):
            if family.assets.filter(split=split).exists():
                services.dataset_create(
                    project=project,
                    name=f"{kind} {split}",
                    kind=kind,
                    split=split,
                    families=["mail"],
                    by=actor,
                )

    root = Path(store.url.removeprefix("file://"))
    files = [(path.name, path.read_text("latin-1")) for path in root.rglob("*") if path.is_file()]
    assert files
    assert leaks(files) == []
    assert leaks(stored_text()) == []


def test_held_text_is_ciphertext_only(everything_in):
    assert HeldExchange.objects.exists()
    assert all(bytes(held.raw).startswith(b"gAAAA") for held in HeldExchange.objects.all())


def test_messages_on_queues_carry_ids_only(everything_in, sent_messages):
    assert all(isinstance(arg, int) for _, args, _ in sent_messages for arg in args)
