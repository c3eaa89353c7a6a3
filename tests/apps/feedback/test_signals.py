"""Feedback about operations, before and after they are known."""

import pytest

from apps.core.crypto import decrypt_json, encrypt_json
from apps.feedback import services
from apps.feedback.models import Capture, FailureCase, FeedbackSignal, HeldExchange, Inference
from apps.versions.models import BaseModel, ModelVersion, Release, ReleaseUnit
from tests.apps.feedback.conftest import RIGHT, exchange

pytestmark = pytest.mark.django_db


def row(project, operation="op_1", **more):
    content = {key: value for key, value in exchange().items() if key in ("messages", "answer")}
    return {
        "operation": operation,
        "project_id": project.pk,
        "family": "invoice_fields",
        "task_type": "interactive",
        "source": "mail/Norden Tools",
        "unit": "u1",
        "version_id": None,
        "edition_kind": "standard",
        "release_id": None,
        "segment": None,
        "assigned_arm": "control",
        "served_arm": "control",
        "revision": 3,
        "status": 200,
        "error": "",
        "failed": False,
        "attempts": [],
        "streamed": False,
        "prompt_tokens": 40,
        "completion_tokens": 12,
        "ttft_ms": 12.0,
        "latency_ms": 90.5,
        "started_at": "2026-03-01T10:00:00+00:00",
        "external_id": "",
        "capture": "held",
        "content": encrypt_json(content).decode(),
        **more,
    }


@pytest.fixture
def release(project):
    base = BaseModel.objects.create(project=project, name="pocket", engine_name="pocket", path="/m")
    one, two = (
        ModelVersion.objects.create(
            project=project, base=base, number=f"1.{n}", major=1, minor=n, created_by="t"
        )
        for n in (0, 1)
    )
    signals = ["error", "negative_feedback", "correction"]
    plan = {"failure_signals": signals}
    return Release.objects.create(
        project=project, candidate=two, control=one, number=1, plan=plan, salt="s", started_by="t"
    )


@pytest.mark.parametrize(
    "operation",
    [
        "op_dc9fb326a5b44960913072206b0c3aff",  # 4960913072206 passes the check of a card number
        "op_bd9011077833431091313aa4190780e0",
        "4f9e2a10-1111-4111-8111-1111411c9d10",
    ],
)
def test_made_up_id_whose_digits_look_like_a_card_takes_feedback(project, actor, operation):
    results = services.signals_ingest(
        project=project, items=[{"operation": operation, "value": False}], by=actor
    )

    assert results[0]["status"] == "created"


def test_characters_that_no_database_keeps_do_not_lose_a_comment(project, actor):
    said = {"operation": "op_1", "comment": "half \ud800, nothing \0, whole \U0001f600"}

    results = services.signals_ingest(project=project, items=[said], by=actor)

    assert results[0]["status"] == "created"
    raw = bytes(FeedbackSignal.objects.get().raw)
    assert decrypt_json(raw)["comment"] == "half \ufffd, nothing \ufffd, whole \U0001f600"


@pytest.mark.parametrize("operation", ["op_4111111111111111", "4111-1111-1111-1111 dc9fb326a5b44960"])
def test_card_number_as_an_id_is_refused(project, actor, operation):
    results = services.signals_ingest(
        project=project, items=[{"operation": operation, "value": False}], by=actor
    )

    assert "card number" in results[0]["message"]


def test_row_taken_twice_is_one_inference(project):
    first = services.inferences_ingest([row(project)])
    again = services.inferences_ingest([row(project), row(project)])

    assert (first, again) == (1, 0)
    assert Inference.objects.get().latency_ms == 90.5


def test_rows_take_a_bounded_number_of_queries(project, django_assert_max_num_queries):
    rows = [row(project, f"op_{i}", capture="failure" if i % 2 else "sample") for i in range(200)]

    with django_assert_max_num_queries(40):
        services.inferences_ingest(rows)

    assert Capture.objects.filter(failed=True).count() == 100


def test_failed_and_sampled_operations_are_captured_and_others_held(project):
    services.inferences_ingest(
        [
            row(project, "op_f", capture="failure", status=502, failed=True),
            row(project, "op_s", capture="sample"),
            row(project, "op_h", capture="held"),
            row(project, "op_n", capture="", content=None),
        ]
    )

    kept = dict(Capture.objects.values_list("operation", "failed"))
    assert kept == {"op_f": True, "op_s": False}
    assert HeldExchange.objects.get().operation == "op_h"
    assert Inference.objects.count() == 4


def test_two_operations_with_one_external_id_are_one_capture(project):
    services.inferences_ingest(
        [
            row(project, "op_1", capture="failure", external_id="order-7"),
            row(project, "op_2", capture="failure", external_id="order-7"),
        ]
    )

    assert Capture.objects.get().external_id == "order-7"


def test_personal_source_of_traffic_is_stored_as_a_hash(project):
    services.inferences_ingest(
        [
            row(
                project,
                capture="failure",
                source="anna@corp.example",
                external_id="a@b.c",
                family="Karen Lewis",
            )
        ]
    )

    capture = Capture.objects.get()
    assert "anna" not in capture.cluster
    assert "@" not in capture.external_id
    assert "Karen" not in capture.family + Inference.objects.get().family


def test_correction_makes_a_held_exchange_a_failure_case(project, actor):
    services.inferences_ingest([row(project)])
    services.signals_ingest(project=project, items=[{"operation": "op_1", "correction": RIGHT}], by=actor)

    services.capture_anonymize(capture=Capture.objects.get())

    case = FailureCase.objects.select_related("capture").get()
    assert case.capture.content["correction"] == RIGHT
    assert case.capture.source == "feedback"
    assert not HeldExchange.objects.exists()
    assert FeedbackSignal.objects.get().raw is None


def test_feedback_may_come_before_its_operation(project, actor):
    services.signals_ingest(project=project, items=[{"operation": "op_1", "value": False}], by=actor)
    assert not Capture.objects.exists()

    services.inferences_ingest([row(project)])

    assert Capture.objects.get().failed
    assert FeedbackSignal.objects.get().joined_at is not None


def test_positive_feedback_keeps_nothing(project, actor):
    services.inferences_ingest([row(project)])

    services.signals_ingest(project=project, items=[{"operation": "op_1", "value": "up"}], by=actor)

    assert not Capture.objects.exists()
    assert HeldExchange.objects.exists()


def test_negative_feedback_on_a_sampled_success_opens_its_case(project, actor):
    services.inferences_ingest([row(project, capture="sample")])
    services.capture_anonymize(capture=Capture.objects.get())
    assert not FailureCase.objects.exists()

    services.signals_ingest(project=project, items=[{"operation": "op_1", "value": -1}], by=actor)

    assert FailureCase.objects.get().capture.failed


def test_late_comment_names_the_same_person_alike(project, actor, make_case):
    case = make_case(operation="op_9", prompt="Dear Karen Lewis, invoice INV-7 over 55.00 EUR is open.")
    comment = "Karen Lewis was angry, and so was Omar Kumar."
    services.signals_ingest(
        project=project, items=[{"operation": "op_9", "value": False, "comment": comment}], by=actor
    )

    services.signal_anonymize(signal=FeedbackSignal.objects.get())

    case.capture.refresh_from_db()
    said = case.capture.content["feedback"][0]["comment"]
    assert said == "<PERSON_1> was angry, and so was <PERSON_2>."
    assert FeedbackSignal.objects.get().content["comment"] == said


def test_one_feedback_id_sent_on_two_days_is_one_record_updated(project, actor):
    item = {"operation": "op_1", "external_id": "f1", "value": True}

    first = services.signals_ingest(project=project, items=[item], by=actor)
    second = services.signals_ingest(project=project, items=[{**item, "value": False}], by=actor)

    assert (first[0]["status"], second[0]["status"]) == ("created", "updated")
    assert FeedbackSignal.objects.get().negative


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"value": True}, "operation"),
        ({"operation": "op_1"}, "Give a value"),
        ({"operation": "op_1", "value": "Anna was rude"}, "put text into comment"),
        ({"operation": "op_1", "value": float("nan")}, "value"),
        ({"operation": "op_1", "comment": 3}, "comment"),
        ({"operation": "op_1", "metric": "anna@x.example", "value": 1}, "metric"),
    ],
)
def test_bad_feedback_says_what_is_wrong(project, actor, item, words):
    results = services.signals_ingest(project=project, items=[item], by=actor)

    assert results[0]["status"] == "invalid"
    assert words in results[0]["message"]
    assert not FeedbackSignal.objects.exists()


@pytest.mark.parametrize(
    ("metric", "value", "negative"),
    [
        ("rating", 2, True),
        ("rating", 3, False),
        ("score", 0, True),
        ("score", 0.4, False),
        ("thumb", "down", True),
    ],
)
def test_what_counts_as_negative(project, actor, metric, value, negative):
    services.signals_ingest(
        project=project, items=[{"operation": "op_1", "metric": metric, "value": value}], by=actor
    )

    assert FeedbackSignal.objects.get().negative is negative


def test_release_hears_of_units_and_of_their_first_failure(project, actor, release):
    part = {"release_id": release.pk, "segment": 0, "assigned_arm": "canary", "capture": "held"}
    services.inferences_ingest(
        [
            row(project, "op_1", unit="u1", **part),
            row(project, "op_2", unit="u2", **part, error="upstream_error", failed=True),
        ]
    )
    assert dict(ReleaseUnit.objects.values_list("unit", "failed")) == {"u1": False, "u2": True}

    for _ in range(2):
        services.signals_ingest(
            project=project,
            items=[{"operation": "op_1", "correction": "right", "external_id": "f"}],
            by=actor,
        )

    unit = ReleaseUnit.objects.get(unit="u1")
    assert (unit.failed, unit.failure, unit.operations) == (True, "correction", 1)
