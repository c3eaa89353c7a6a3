"""Pages of feedback: status, permission, one visible sentence, and how many queries a list takes."""

import json

import pytest
from django.urls import reverse
from django.utils import timezone

from apps.core.models import Membership, Role, User
from apps.core.permissions import system_actor
from apps.feedback import services
from apps.feedback.models import Capture, FailureCase, Label
from packs.starter.tasks import generate
from tests.apps.feedback.conftest import RIGHT, WRONG

pytestmark = pytest.mark.django_db


def cases(project, count, start=0, **more):
    for i in range(start, start + count):
        capture = Capture.objects.create(
            project=project,
            external_id=f"c{i}",
            source="api",
            state="anonymized",
            raw_expires_at=timezone.now(),
            content={
                "messages": [{"role": "user", "content": f"Dear <PERSON_1>, bill {i}."}],
                "answer": f"wrong {i}",
            },
            spans=[
                {
                    "path": "messages.0.content",
                    "start": 5,
                    "end": 15,
                    "entity": "PERSON",
                    "score": 0.5,
                    "unsure": True,
                }
            ],
        )
        FailureCase.objects.create(project=project, capture=capture, title=f"Bill <PERSON_1> {i}", **more)


@pytest.fixture
def pack_assets(project, actor, store):
    made = services.family_ensure(
        project=project, name="invoice_fields", pack="starter", verifier_kind="json_fields", by=actor
    )
    return services.assets_import(
        project=project, family=made, tasks=generate("invoice_fields", seed=3, count=20), by=actor
    )


def log_in_as(client, project, role):
    user = User.objects.create_user(f"u-{role}", password="correct horse battery")
    Membership.objects.create(project=project, user=user, role=role)
    client.force_login(user)
    return user


@pytest.mark.parametrize(
    "name", ["inbox", "label", "captures", "assets", "datasets", "dataset_create", "rules"]
)
def test_empty_pages_open_and_say_what_comes_here(page, name):
    answer = page.get(reverse(f"feedback:{name}"))

    assert answer.status_code == 200
    assert b"<h1>" in answer.content


@pytest.mark.parametrize("name", ["inbox", "label", "captures", "assets", "datasets", "rules"])
def test_strangers_are_sent_to_the_login(client, name, project):
    answer = client.get(reverse(f"feedback:{name}"))

    assert answer.status_code == 302
    assert "/login/" in answer["Location"]


def test_viewer_reads_failures_and_may_not_label(client, project):
    log_in_as(client, project, Role.VIEWER)

    assert client.get(reverse("feedback:inbox")).status_code == 200
    assert client.get(reverse("feedback:label")).status_code == 403


def test_inbox_filters_by_the_url_and_marks_masked_spans(page, project):
    cases(project, 2)
    FailureCase.objects.filter(title__contains="1").exclude(title__contains="0").update(state="labelled")

    answer = page.get(reverse("feedback:inbox"), {"q": "PERSON_1> 0"}).content.decode()

    assert '<span class="mask">&lt;PERSON_1&gt;</span> 0' in answer
    assert "&lt;PERSON_1&gt;</span> 1" not in answer


def test_inbox_shows_groups_of_similar_cases(page, project):
    cases(project, 3, group_key="g1")
    cases(project, 1, start=3, group_key="g2")

    answer = page.get(reverse("feedback:inbox")).content.decode()
    one = page.get(reverse("feedback:inbox"), {"group": "g1"}).content.decode()

    assert "Similar cases" in answer
    assert "group=g1" in answer
    assert "group=g2" not in answer
    assert "One group of similar cases" in one
    assert "3 cases" in one


@pytest.mark.parametrize("name", ["inbox", "captures"])
def test_lists_of_cases_pin_their_queries_and_read_no_text(
    page, project, name, django_assert_max_num_queries, django_assert_num_queries
):
    cases(project, 60, group_key="g1")

    with django_assert_max_num_queries(16) as taken:
        page.get(reverse(f"feedback:{name}"))

    assert not any('"feedback_capture"."content"' in query["sql"] for query in taken.captured_queries)
    before = len(taken.captured_queries)
    cases(project, 60, start=60, group_key="g1")
    with django_assert_num_queries(before):
        page.get(reverse(f"feedback:{name}"))


def test_list_of_tasks_pins_its_queries(page, pack_assets, django_assert_max_num_queries):
    with django_assert_max_num_queries(14):
        answer = page.get(reverse("feedback:assets"))

    assert b"20 tasks" in answer.content


def test_case_shows_transcript_history_and_lineage(page, labelled):
    answer = page.get(labelled.get_absolute_url()).content.decode()

    assert "Wrong value, Major" in answer
    assert "Make the task" in answer or "Make a family" in answer
    assert "12.50" in answer
    assert f"Capture {labelled.capture_id}" in answer


def test_case_of_another_project_is_not_found(page, labelled):
    from apps.core.models import Project

    Capture.objects.update(project=Project.objects.create(name="Other", slug="other"))
    FailureCase.objects.update(project=Project.objects.get(slug="other"))

    assert page.get(labelled.get_absolute_url()).status_code == 404


def test_task_is_made_from_the_case_page(page, labelled, family):
    answer = page.post(
        reverse("feedback:case_asset", args=[labelled.pk]), {"family": family.name}, follow=True
    )

    text = answer.content.decode()
    assert "is now a task of Invoice fields" in text
    assert "120.5" in text
    assert f"Case {labelled.pk}" in text


def test_refused_task_says_why_on_the_case(page, labelled, family):
    Label.objects.update(correction=WRONG)
    url = labelled.get_absolute_url()

    answer = page.post(
        reverse("feedback:case_asset", args=[labelled.pk]),
        {"family": family.name},
        headers={"referer": f"http://testserver{url}"},
        follow=True,
    )

    assert "passes the verifier" in answer.content.decode()


# the labelling screen ------------------------------------------------------------------------


def test_label_screen_leases_a_case_and_declares_its_keys(page, project):
    cases(project, 2)

    text = page.get(reverse("feedback:label")).content.decode()

    case = FailureCase.objects.exclude(leased_by="").get()
    assert case.leased_by == "ada"
    for keys in ("1", "9", "s", "c", "Space", "Backspace", "Control+Enter"):
        assert f'aria-keyshortcuts="{keys}"' in text
    assert '<span class="mask">&lt;PERSON_1&gt;</span>' in text
    assert "1 unsure" in text
    assert "checked" not in text


def test_plain_form_saves_and_shows_the_next_case(page, project):
    cases(project, 2)
    first = FailureCase.objects.order_by("pk").first()

    answer = page.post(
        reverse("feedback:label_save", args=[first.pk]),
        {"kind": "wrong_value", "severity": "major"},
        follow=True,
    )

    first.refresh_from_db()
    assert first.state == "labelled"
    assert b"Bill" in answer.content
    assert b"Nothing decided yet" not in answer.content


def test_script_gets_the_last_decisions_back(page, project):
    cases(project, 1)
    case = FailureCase.objects.get()

    answer = page.post(
        reverse("feedback:label_save", args=[case.pk]),
        {"kind": "wrong_value", "severity": "major"},
        headers={"accept": "text/x-fragment"},
    )

    assert answer.status_code == 200
    assert answer.content.decode().startswith('<section class="panel" id="recent"')


def test_refused_save_is_a_sentence_for_the_script_and_the_draft_stays(page, project):
    cases(project, 1)
    case = FailureCase.objects.get()
    services.case_lease(case=case, by=system_actor(project, "bob"))

    answer = page.post(
        reverse("feedback:label_save", args=[case.pk]),
        {"kind": "wrong_value", "severity": "major"},
        headers={"accept": "text/x-fragment"},
    )

    assert answer.status_code == 409
    assert "bob is working on this case" in answer.json()["message"]
    assert not Label.objects.exists()


def test_next_case_is_leased_ahead_as_a_fragment(page, project):
    cases(project, 2)
    page.get(reverse("feedback:label"))
    shown = FailureCase.objects.exclude(leased_by="").get()

    ahead = page.get(reverse("feedback:label_next"), {"exclude": shown.pk})
    none = page.get(reverse("feedback:label_next"), {"exclude": shown.pk})

    assert ahead.content.decode().strip().startswith('<div class="label-case')
    assert FailureCase.objects.exclude(leased_by="").count() == 2
    assert none.status_code == 200  # the same case again: it is leased to us


def test_nothing_ahead_is_no_content(page, project):
    cases(project, 1)
    shown = FailureCase.objects.get()

    assert page.get(reverse("feedback:label_next"), {"exclude": shown.pk}).status_code == 204


def test_locked_queue_says_when_to_come_back(page, project):
    cases(project, 1)
    services.case_lease(case=FailureCase.objects.get(), by=system_actor(project, "bob"))

    text = page.get(reverse("feedback:label")).content.decode()

    assert "Everything left is being labelled" in text
    assert "The first lease ends at" in text


def test_empty_queue_says_that_it_is_done(page):
    assert b"Nothing to label" in page.get(reverse("feedback:label")).content


def test_undo_opens_the_last_decision_again(page, project):
    cases(project, 1)
    case = FailureCase.objects.get()
    page.post(reverse("feedback:label_save", args=[case.pk]), {"kind": "wrong_value", "severity": "major"})

    answer = page.post(reverse("feedback:label_undo"), follow=True)

    case.refresh_from_db()
    assert case.state == "new"
    assert f"Case {case.pk} is open again." in answer.content.decode()


def test_skip_puts_the_case_behind(page, project):
    cases(project, 2)
    first = FailureCase.objects.order_by("pk").first()

    page.post(reverse("feedback:label_skip", args=[first.pk]))

    first.refresh_from_db()
    assert first.skips == 1


def test_decision_for_the_whole_group(page, project):
    cases(project, 3, group_key="g1")
    case = FailureCase.objects.order_by("pk").first()

    page.post(
        reverse("feedback:label_save", args=[case.pk]),
        {"kind": "wrong_value", "severity": "major", "group": "1"},
    )

    assert FailureCase.objects.filter(state="labelled").count() == 3


def test_verifier_says_what_it_thinks_of_the_answer_being_typed(page, make_case, family):
    case = make_case()
    url = reverse("feedback:label_check", args=[case.pk])

    good = page.post(url, {"correction": RIGHT}).content.decode()
    bad = page.post(url, {"correction": "INV-42"}).content.decode()

    assert "would fail this answer, pass yours" in good
    assert "cannot be read" in bad
    assert not Label.objects.exists()


def test_decision_can_be_changed_until_it_is_a_task(page, labelled, family, actor):
    url = f"{reverse('feedback:label')}?case={labelled.pk}"
    text = page.get(url).content.decode()
    assert "checked" in text
    assert "INV-42&quot;,&quot;total&quot;:120.50" in text

    services.asset_create(case=labelled, family=family, by=actor)

    answer = page.get(url, follow=True)
    assert "became a task" in answer.content.decode()


# tasks, datasets, rules ----------------------------------------------------------------------


def test_dataset_is_made_and_downloaded(page, pack_assets, store):
    answer = page.post(
        reverse("feedback:dataset_create"),
        {"name": "first", "kind": "rl", "split": "train", "families": ["invoice_fields"]},
    )

    assert answer.status_code == 302
    text = page.get(answer["Location"]).content.decode()
    assert "first v1" in text
    export = page.get(f"{answer['Location']}export/")
    assert json.loads(export.content.splitlines()[0])["family"] == "invoice_fields"


def test_dataset_without_tasks_says_so(page, family):
    answer = page.post(
        reverse("feedback:dataset_create"),
        {"name": "first", "kind": "rl", "split": "train", "families": ["invoice_fields"]},
    )

    assert answer.status_code == 400
    assert "have no train tasks yet" in answer.content.decode()


def test_task_page_opens_and_retires(page, pack_assets):
    asset = pack_assets[0]
    assert asset.key.encode() in page.get(asset.get_absolute_url()).content

    page.post(reverse("feedback:asset_retire", args=[asset.pk]))

    asset.refresh_from_db()
    assert asset.retired_at is not None


def test_rules_are_tried_before_they_are_saved(page, project):
    data = {"deny": "Heron", "patterns": "ORDER_NUMBER ORD-\\d{6}", "sample": "Project Heron, ORD-123456"}

    tried = page.post(reverse("feedback:rules"), {**data, "try": "1"}).content.decode()

    assert "&lt;DENIED_1&gt;" in tried
    assert "&lt;ORDER_NUMBER_1&gt;" in tried
    assert not project.anonymization_rules.exists()
    page.post(reverse("feedback:rules"), {**data, "save": "1"})
    assert project.anonymization_rules.get().rules["deny"] == ["Heron"]


def test_wrong_rule_is_named_at_its_field(page, project):
    answer = page.post(reverse("feedback:rules"), {"patterns": "ORDER_NUMBER (", "sample": "x", "try": "1"})

    assert answer.status_code == 400
    assert "patterns: ORDER_NUMBER" in answer.content.decode()


def test_labeller_may_try_rules_and_not_save_them(client, project):
    log_in_as(client, project, Role.LABELLER)

    assert client.post(reverse("feedback:rules"), {"deny": "Heron", "save": "1"}).status_code == 403
    assert not project.anonymization_rules.exists()


def test_loop_and_rail_show_what_waits(page, project):
    from apps.core import registries

    cases(project, 3)

    assert registries.nav_counts["failures"](project) == "3"
    values = {stage.name: stage.summary(project)["value"] for stage in registries.loop_stages}
    assert values["To label"] == "3"
    assert any(
        row["what"] == "3 failures to label"
        for task in registries.personal_tasks
        for row in task.rows(project)
    )
