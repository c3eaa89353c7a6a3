"""Pages of a verifier's agreement with people."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.core.models import Project
from apps.core.permissions import Actor
from apps.feedback import services
from apps.feedback.models import AgreementRow, Capture, FailureCase, Verifier, VerifierAgreement

pytestmark = pytest.mark.django_db
FIGURE = {"value": 0.9, "low": 0.8, "high": 0.95, "n": 40, "clusters": 22, "method": "Wilson"}


@pytest.fixture
def verifier(project: Project, actor: Actor) -> Verifier:
    return services.verifier_create(
        project=project, name="tone", kind="contains", params={"texts": ["refund"]}, by=actor
    )


@pytest.fixture
def measured(verifier: Verifier, project: Project, actor: Actor) -> Any:
    """measured(rows, **fields) is a finished measurement; rows are (people, verifier)."""

    def make(rows: Any = (), **fields: Any) -> VerifierAgreement:
        values = {"size": len(rows), "started_by": "ada", "n": 40, "clusters": 22} | fields
        agreement = VerifierAgreement.objects.create(
            verifier=verifier, number=verifier.agreements.count() + 1, **values
        )
        agreement.finished_at = agreement.started_at
        agreement.save()
        for index, (passes, state) in enumerate(rows):
            services.captures_ingest(
                project=project,
                items=[{"external_id": f"e{index}", "messages": [{"role": "user", "content": "?"}]}],
                by=actor,
            )
            capture = Capture.objects.get(project=project, external_id=f"e{index}")
            case = FailureCase.objects.create(project=project, capture=capture, title=f"Question {index}")
            AgreementRow.objects.create(
                agreement=agreement, case=case, text="answer", passes=passes, state=state, reasons=["So."]
            )
        return agreement

    return make


def test_figures_come_with_n_and_interval_and_disagreeing_cases_are_linked(
    page: Client, measured: Any
) -> None:
    rows = [(False, "passed"), (True, "failed"), (True, "passed"), (True, "unscored")]
    agreement = measured(rows, agreement=FIGURE, kappa=FIGURE, f1=FIGURE, missed=1, accused=1)

    html = page.get(agreement.get_absolute_url()).content.decode().replace("\u00a0", " ")

    assert "90 % (80–95), n = 40, 22 sources" in html
    assert "(0.80 to 0.95, n = 40, 22 sources)" in html
    for case in FailureCase.objects.filter(title__in=["Question 0", "Question 1", "Question 3"]):
        assert case.get_absolute_url() in html
    assert "Question 2" not in html


def test_too_small_a_measurement_shows_counts_and_no_figure(page: Client, measured: Any) -> None:
    agreement = measured(n=3, clusters=2, caught=3, too_small="n too small: both decided 3 answers.")

    for url in (agreement.get_absolute_url(), agreement.verifier.get_absolute_url()):
        html = page.get(url).content.decode()
        assert "n too small" in html
        assert "Cohen" not in html
    assert "n too small" in page.get(reverse("training:verifiers")).content.decode()


def test_an_undefined_kappa_is_said_in_words(page: Client, measured: Any) -> None:
    html = page.get(measured(agreement=FIGURE).get_absolute_url()).content.decode()

    assert "undefined: all verdicts are the same" in html


def test_one_that_runs_is_live_and_one_that_could_not_run_says_why(
    page: Client, measured: Any, verifier: Verifier
) -> None:
    failed = measured(error="no worker")
    running = VerifierAgreement.objects.create(verifier=verifier, number=9, size=4, started_by="ada")

    assert "no worker" in page.get(failed.get_absolute_url()).content.decode()
    html = page.get(running.get_absolute_url()).content.decode()
    assert f"feedback.agreement:{running.pk}" in html
    assert "4 answers of labelled cases are being judged." in html


def test_measuring_without_labels_says_what_to_do(page: Client, verifier: Verifier) -> None:
    answer = page.post(reverse("training:verifier_measure", args=[verifier.pk]), follow=True)

    assert "No family is judged by this verifier" in answer.content.decode()


def test_another_project_s_measurement_is_not_found(page: Client, project: Project) -> None:
    foreign = Project.objects.create(name="Other", slug="other")
    theirs = Verifier.objects.create(project=foreign, name="x", kind="exact", created_by="eve")
    agreement = VerifierAgreement.objects.create(verifier=theirs, number=1, size=1, started_by="eve")

    assert page.get(agreement.get_absolute_url()).status_code == 404


@pytest.mark.parametrize("count", [1, 8])
def test_the_page_asks_the_database_a_constant_number_of_times(
    page: Client, measured: Any, count: int, django_assert_num_queries: Any
) -> None:
    agreement = measured([(False, "passed")] * count + [(True, "error")] * count)
    page.get(agreement.get_absolute_url())

    with django_assert_num_queries(11):
        page.get(agreement.get_absolute_url())
