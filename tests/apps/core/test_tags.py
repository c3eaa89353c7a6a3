"""The components as they are written in a page."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django import forms
from django.core.paginator import Paginator
from django.template import Context, Template
from django.test import RequestFactory
from django.utils import timezone

from apps.core.lineage import Node, lineage_record
from apps.core.models import Event, Project


def _render(source: str, **context: Any) -> str:
    context.setdefault("request", RequestFactory().get("/list/?state=failed"))
    return Template(source).render(Context(context))


def test_a_badge_has_icon_word_and_tone() -> None:
    html = _render('{% badge "failed" %}')

    assert "badge-fail" in html
    assert "✕" in html
    assert html.strip().endswith("failed</span>")


def test_a_verdict_is_said_once() -> None:
    diff = {"mean": 0.06, "low": 0.02, "high": 0.1, "n": 200, "verdict": "better"}

    html = _render("{% difference diff %}", diff=diff)

    assert html.lower().count("better") == 1
    assert (
        html.replace("\u00a0", " ").count("+6 points (2 to 10, paired, n = 200)") == 2
    )  # the sentence, and the drawing's label


def test_a_difference_of_two_named_sides_takes_the_colours_of_their_verdicts() -> None:
    html = _render(
        '{% diff "right" "wrong" old_name="run 1" new_name="run 2" old_state="passed" new_state="failed" %}'
    )

    assert "diff-gone-pass diff-new-fail" in html
    legend = html.partition("<table")[0]
    assert legend.index("−") < legend.index("run 1") < legend.index("passed")
    assert legend.index("+") < legend.index("run 2") < legend.index("failed")


def test_a_difference_without_names_has_no_legend() -> None:
    html = _render('{% diff "old" "new" %}')

    assert "diff-legend" not in html
    assert "diff-gone-" not in html


def test_a_score_without_data_draws_nothing() -> None:
    html = _render("{% score none %}{% scores rows %}", none=None, rows=[("3.5", None)])

    assert "circle" not in html
    assert html.count("no data") == 3  # words, label of the drawing, row of the drawing


@pytest.mark.django_db
def test_the_lineage_strip_marks_where_you_are(project: Project) -> None:
    lineage_record(project=project, parent=Node("t:1", "run 1", "/run/1"), child=Node("v:1", "3.5", "/v/1"))

    html = _render('{% lineage "v:1" %}')

    assert '<a href="/run/1">run 1</a>' in html
    assert '<span aria-current="true">3.5</span>' in html


def test_progress_estimates_the_rest_from_what_is_done() -> None:
    started = timezone.now() - timedelta(minutes=2)

    html = _render('{% progress 20 80 unit="cases" started_at=started cancel_url="/c/" %}', started=started)

    assert "20 of 80 cases" in html
    assert "about 6 min left" in html
    assert 'action="/c/"' in html


def test_finished_progress_cannot_be_cancelled() -> None:
    now = timezone.now()

    html = _render('{% progress 80 80 started_at=now finished_at=now cancel_url="/c/" %}', now=now)

    assert "Cancel" not in html
    assert "left" not in html


def test_pages_keep_the_filters() -> None:
    page = Paginator(range(95), 10).get_page(2)

    html = _render('{% pagination page "case" %}', page=page)

    assert "95 cases" in html
    assert "?state=failed&amp;page=3" in html
    assert '<span aria-current="page">2</span>' in html


class _Form(forms.Form):
    name = forms.CharField(help_text="As people call it.")
    note = forms.CharField(required=False)


def test_a_field_ties_its_help_and_errors_to_the_control() -> None:
    html = _render("{% fields form %}", form=_Form({"name": ""}))

    assert 'aria-invalid="true"' in html
    assert 'aria-describedby="id_name_helptext id_name_error"' in html
    assert 'id="id_name_helptext"' in html
    assert 'id="id_name_error"' in html
    assert html.count("(optional)") == 1


def test_an_action_that_changes_something_is_a_form() -> None:
    html = _render(
        '{% action "Undo" "/r/" method="post" style="danger" key="x" key_id=3 %}', csrf_token="tok"
    )

    assert '<form class="inline" method="post" action="/r/">' in html
    assert 'name="csrfmiddlewaretoken" value="tok"' in html
    assert 'name="key_id" value="3"' in html
    assert 'aria-keyshortcuts="x"' in html


@pytest.mark.django_db
def test_a_live_part_resumes_after_the_last_event(project: Project) -> None:
    event = Event.objects.create(project=project, topic="t:1", kind="X")
    request = RequestFactory().get("/run/3/?tab=a&b=1")
    request.project = project  # type: ignore[attr-defined]

    html = _render('<div {% live topic="t:1" select="#x" %}>', request=request)

    assert f'data-after="{event.pk}"' in html
    assert 'hx-get="/run/3/?tab=a&amp;b=1"' in html
    assert 'hx-select="#x"' in html


def test_moments_keep_their_exact_time_as_a_title() -> None:
    html = _render("{% ago then %} {% ago none %}", then=timezone.now() - timedelta(hours=3), none=None)

    assert ">3 h ago</time>" in html
    assert html.endswith("never")


def test_lists_read_as_lists() -> None:
    assert _render("{{ value|listed }}", value=["capture", "label"]) == "capture, label"


def test_a_cost_reads_the_same_from_a_float_and_from_a_decimal() -> None:
    assert _render("{{ a|usd }} {{ b|usd }} {{ c|usd }}", a=0.0012, b=Decimal("0.0012"), c=None) == (
        "$0.0012 $0.0012 unknown"
    )


def test_a_sentence_kept_together_is_escaped_once() -> None:
    html = _render('{{ rows|join:" "|unbroken }} {{ rows.0|unbroken }}', rows=["<b>'s 5 %", "n = 3"])

    assert html == "&lt;b&gt;&#x27;s 5\u00a0% n\u00a0=\u00a03 &lt;b&gt;&#x27;s 5\u00a0%"


def test_a_message_with_pictures_is_read_by_its_words() -> None:
    parts = [{"type": "text", "text": "How many?"}, {"type": "image_url", "image_url": {"url": "data:,"}}]

    assert _render("{{ one|spoken }} {{ two|spoken }}", one={"content": parts}, two={"content": "Sum?"}) == (
        "How many? Sum?"
    )


def test_facts_and_code_escape_what_they_show() -> None:
    html = _render("{% facts pairs %}{% code text %}", pairs=[("a", "<b>"), ("c", "")], text="</pre><script>")

    assert "<b>" not in html
    assert "<script>" not in html
    assert "<dd>–</dd>" in html
