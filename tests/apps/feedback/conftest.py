"""Small exchanges and what becomes of them."""

from collections.abc import Callable
from typing import Any

import pytest

from apps.core.models import Project
from apps.core.permissions import Actor
from apps.feedback import services
from apps.feedback.models import Capture, FailureCase, Family

PROMPT = "Invoice INV-42 of Norden Tools\nTotal 120.50 EUR\nJSON: invoice, total"
RIGHT = '{"invoice":"INV-42","total":120.50}'
WRONG = '{"invoice":"INV-42","total":12.50}'


def exchange(
    external_id: str = "e1", prompt: str = PROMPT, answer: str = WRONG, **more: Any
) -> dict[str, Any]:
    return {
        "external_id": external_id,
        "messages": [{"role": "user", "content": prompt}],
        "answer": answer,
        "family": "invoice_fields",
        **more,
    }


MakeCase = Callable[..., FailureCase]


@pytest.fixture
def make_case(project: Project, actor: Actor) -> MakeCase:
    """Capture an exchange and anonymize it; returns its case."""

    def make(external_id: str = "e1", **more: Any) -> FailureCase:
        services.captures_ingest(project=project, items=[exchange(external_id, **more)], by=actor)
        capture = Capture.objects.get(project=project, external_id=external_id)
        services.capture_anonymize(capture=capture)
        return FailureCase.objects.select_related("project", "capture").get(capture=capture)

    return make


@pytest.fixture
def family(project: Project, actor: Actor) -> Family:
    return services.family_ensure(
        project=project, name="invoice_fields", verifier_kind="json_fields", by=actor
    )


@pytest.fixture
def labelled(make_case: MakeCase, actor: Actor) -> FailureCase:
    """A case with its correction."""
    case = make_case()
    services.case_label(case=case, kind="wrong_value", severity="major", correction=RIGHT, by=actor)
    return FailureCase.objects.select_related("project", "capture").get(pk=case.pk)
