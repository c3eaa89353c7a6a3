"""Taking exchanges in."""

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.core.crypto import decrypt_json
from apps.core.errors import Refused
from apps.feedback import services
from apps.feedback.models import Capture, FailureCase
from tests.apps.feedback.conftest import PROMPT, exchange

pytestmark = pytest.mark.django_db


def test_capture_is_encrypted_and_sent_to_be_anonymized(
    project, actor, sent_messages, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        results = services.captures_ingest(project=project, items=[exchange()], by=actor)

    capture = Capture.objects.get()
    assert results == [{"external_id": "e1", "status": "created", "message": ""}]
    assert capture.state == "raw"
    assert b"Norden" not in bytes(capture.raw)
    assert decrypt_json(capture.raw)["messages"][0]["content"] == PROMPT
    assert ("feedback.anonymize", (capture.pk,), "anonymize") in sent_messages


def test_same_external_id_is_one_capture(project, actor):
    services.captures_ingest(project=project, items=[exchange()], by=actor)

    results = services.captures_ingest(
        project=project, items=[exchange(answer="other"), exchange("e2"), exchange("e2")], by=actor
    )

    assert [row["status"] for row in results] == ["exists", "created", "exists"]
    assert Capture.objects.count() == 2
    assert decrypt_json(Capture.objects.get(external_id="e1").raw)["answer"] != "other"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"messages": []}, "at least one message"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages.0.role"),
        ({"answer": 3}, "answer: must be text"),
        ({"answer": "x" * 300_000}, "at most 256 KiB"),
        ({"external_id": "anna@example.com"}, "external_id"),
        ({"external_id": "4111 1111 1111 1111"}, "card number"),
        ({"cluster": "Anna Miller"}, "person's name"),
        ({"cluster": "customer/karen_lewis"}, "person's name"),
        ({"failed": "yes"}, "failed"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "cannot be anonymized",
        ),
    ],
)
def test_bad_item_spoils_only_itself(project, actor, change, words):
    results = services.captures_ingest(
        project=project, items=[{**exchange("bad"), **change}, exchange("good")], by=actor
    )

    assert results[0]["status"] == "invalid"
    assert words in results[0]["message"]
    assert results[1]["status"] == "created"
    assert list(Capture.objects.values_list("external_id", flat=True)) == ["good"]


def test_refusal_quotes_nothing_that_was_sent(project, actor):
    item = exchange(messages=[{"role": "user", "content": "x", "secret": "sk-1234567890abcdef1234"}])

    results = services.captures_ingest(project=project, items=[item], by=actor)

    assert results[0]["status"] == "invalid"
    assert "sk-1234" not in results[0]["message"]


@pytest.mark.parametrize("count", [0, 1001])
def test_number_of_items_is_bounded(project, actor, count):
    with pytest.raises(Refused, match="Send 1 to 1,000 items"):
        services.captures_ingest(project=project, items=[exchange()] * count, by=actor)


def test_thousand_items_take_a_bounded_number_of_queries(project, actor, django_assert_max_num_queries):
    items = [exchange(f"e{i}") for i in range(1000)]

    with django_assert_max_num_queries(40):
        results = services.captures_ingest(project=project, items=items, by=actor)

    assert {row["status"] for row in results} == {"created"}


def test_anonymized_capture_loses_its_ciphertext_and_becomes_a_case(make_case):
    case = make_case(prompt="Dear Karen Lewis, invoice INV-7 of 2024-03-01 over 55.00 EUR is open.")

    capture = case.capture
    assert capture.state == "anonymized"
    assert capture.raw is None
    assert "Karen" not in str(capture.content)
    assert "<PERSON_1>" in capture.content["messages"][0]["content"]
    assert "INV-7 of 2024-03-01 over 55.00 EUR" in capture.content["messages"][0]["content"]
    assert case.title.startswith("Dear <PERSON_1>")
    assert capture.spans[0]["path"] == "messages.0.content"


def test_success_becomes_no_case(project, actor):
    services.captures_ingest(project=project, items=[exchange(failed=False)], by=actor)

    services.capture_anonymize(capture=Capture.objects.get())

    assert Capture.objects.get().state == "anonymized"
    assert not FailureCase.objects.exists()


def test_anonymizing_twice_is_harmless(make_case):
    case = make_case()
    before = Capture.objects.values().get()

    services.capture_anonymize(capture=case.capture)

    assert Capture.objects.values().get() == before
    assert FailureCase.objects.count() == 1


def test_text_without_a_key_is_refused_after_five_attempts(project, actor):
    services.captures_ingest(project=project, items=[exchange()], by=actor)
    Capture.objects.update(raw=b"not a token")

    for _ in range(5):
        services.capture_anonymize(capture=Capture.objects.get())

    capture = Capture.objects.get()
    assert (capture.state, capture.raw) == ("refused", None)
    assert capture.error == "No encryption key fits this text any more."


def test_sweep_sends_again_what_waits(project, actor, sent_messages, django_capture_on_commit_callbacks):
    services.captures_ingest(project=project, items=[exchange()], by=actor)
    sent_messages.clear()

    with django_capture_on_commit_callbacks(execute=True):
        services.captures_sweep()
    assert sent_messages == []
    Capture.objects.update(dispatched_at=timezone.now() - timedelta(minutes=1))
    with django_capture_on_commit_callbacks(execute=True):
        services.captures_sweep()

    assert sent_messages == [("feedback.anonymize", (Capture.objects.get().pk,), "anonymize")]


def test_sweep_deletes_raw_text_past_its_time(project, actor):
    services.captures_ingest(project=project, items=[exchange()], by=actor)
    Capture.objects.update(raw_expires_at=timezone.now() - timedelta(seconds=1))

    services.captures_sweep()

    capture = Capture.objects.get()
    assert (capture.state, capture.raw) == ("expired", None)


def test_failed_eval_result_is_captured_once(project):
    for _ in range(2):
        capture = services.case_capture(
            project=project,
            source="eval",
            external_id="eval:7:3",
            content={**exchange(), "reference": {"total": 1}, "verifier": {"kind": "json_fields"}},
            family="invoice_fields",
            cluster="mail/Norden Tools",
        )

    assert Capture.objects.count() == 1
    assert capture.cluster == "mail/Norden Tools"


def test_similar_failures_share_a_group(make_case):
    first = make_case("a", prompt="Invoice INV-42 of Norden Tools\nTotal 120.50 EUR\nJSON: invoice, total")
    alike = make_case("b", prompt="Invoice INV-77 of Alpine Paper\nTotal 8.00 EUR\nJSON: invoice, total")
    other = make_case("c", prompt="Which tool opens a refund for the last order of this customer?")

    assert first.group_key == alike.group_key
    assert other.group_key != first.group_key
