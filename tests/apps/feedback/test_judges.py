"""Judges as numbered versions, and gold answers."""

import pytest

from apps.core.errors import Conflict, Refused
from apps.core.models import AuditEvent
from apps.feedback import services
from apps.feedback.judges import judge_digest, judge_setup
from apps.feedback.models import GoldAnswer, Judge

pytestmark = pytest.mark.django_db
PARAMS = {"criteria": ["It is polite."], "models": ["frontier"]}
GOLD = {"question": "When?", "answer": "At nine.", "passes": True}


def save(project, actor, name="Tone", kind="judge", **params):
    return services.judge_save(project=project, name=name, kind=kind, params={**PARAMS, **params}, by=actor)


def test_a_judge_is_saved_as_numbered_versions_that_stay(project, actor):
    first = save(project, actor)
    second = save(project, actor, repeats=2)

    assert (str(first), str(second)) == ("Tone v1", "Tone v2")
    assert Judge.objects.get(pk=first.pk).params == PARAMS
    assert AuditEvent.objects.filter(action="judge.save").count() == 2


def test_saving_the_same_judge_again_is_refused(project, actor):
    save(project, actor)

    with pytest.raises(Conflict, match="says exactly this already"):
        save(project, actor)
    assert Judge.objects.count() == 1


@pytest.mark.parametrize(
    ("kind", "params", "sentence"),
    [
        ("judge", {"criteria": []}, "criteria"),
        ("judge", {"threshold": 2}, "threshold"),
        ("judge", {"question": "Q?"}, "every answer brings its own"),
        ("judge", {"criteria": ["a\0"]}, "NUL"),
        ("judge", {"criteria": [float("nan")]}, "valid JSON"),
        ("label", {"labels": ["a", "b"], "passing_labels": ["c"]}, "none of the labels"),
        ("pairwise", {"passing_outcomes": ["loss"]}, "passing_outcomes"),
        ("exact", {}, "one of: judge, label, pairwise"),
    ],
)
def test_a_judge_that_could_not_work_is_refused_in_words(project, actor, kind, params, sentence):
    with pytest.raises(Refused, match=sentence):
        save(project, actor, kind=kind, **params)


def test_a_judge_needs_a_name(project, actor):
    with pytest.raises(Refused, match="name"):
        save(project, actor, name="  ")


def test_the_digest_leaves_out_a_question_and_the_setup_also_the_criteria():
    other = {**PARAMS, "criteria": ["It is short."]}

    assert judge_digest("judge", PARAMS) == judge_digest("judge", {**PARAMS, "question": "Q?"})
    assert judge_digest("judge", PARAMS) != judge_digest("judge", other)
    assert judge_digest("judge", PARAMS) == judge_digest("judge", {**PARAMS, "repeats": 1, "threshold": 0.5})
    assert judge_setup("judge", PARAMS) == judge_setup("judge", other)
    assert judge_setup("judge", PARAMS) != judge_setup("judge", {**PARAMS, "repeats": 3})


def test_gold_answers_are_kept_once_and_take_the_newer_verdict(project, actor):
    services.gold_add(project=project, items=[GOLD, {**GOLD, "answer": "At ten.", "passes": False}], by=actor)

    counts = services.gold_add(project=project, items=[GOLD, {**GOLD, "answer": "At ten."}], by=actor)

    assert counts == {"added": 0, "changed": 1, "same": 1}
    assert set(GoldAnswer.objects.values_list("answer", "passes")) == {("At nine.", True), ("At ten.", True)}


def test_a_retired_gold_answer_comes_back_when_it_is_added_again(project, actor):
    services.gold_add(project=project, items=[GOLD], by=actor)
    gold = GoldAnswer.objects.get()

    services.gold_retire(gold=gold, by=actor)
    with pytest.raises(Conflict, match="retired already"):
        services.gold_retire(gold=gold, by=actor)
    services.gold_add(project=project, items=[GOLD], by=actor)

    assert GoldAnswer.objects.get().retired_at is None


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        ({**GOLD, "passes": "yes"}, "true or false"),
        ({**GOLD, "answer": " "}, "a question and an answer"),
        ({**GOLD, "answer": "x" * 70_000}, "longer than"),
        ({**GOLD, "answer": "a\0b"}, "cannot be stored"),
        ({**GOLD, "answer": "\ud800"}, "cannot be stored"),
        ({**GOLD, "grade": 1}, "“grade” is not a field"),
        ({**GOLD, "question": 3}, "must be a text"),
    ],
)
def test_one_bad_gold_answer_adds_none(project, actor, item, sentence):
    with pytest.raises(Refused, match=sentence) as refused:
        services.gold_add(project=project, items=[GOLD, item], by=actor)
    assert refused.value.detail == {"item": 2}
    assert not GoldAnswer.objects.exists()


def test_a_gold_answer_cannot_pass_and_fail(project, actor):
    with pytest.raises(Refused, match="as passing and as failing"):
        services.gold_add(project=project, items=[GOLD, {**GOLD, "passes": False}], by=actor)
