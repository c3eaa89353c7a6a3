"""The page on which a verifier is written, edited and tried."""

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.core.models import Membership, Project, Role, WorkUnit
from apps.core.permissions import Actor
from apps.feedback import services
from apps.feedback.models import Family, Verifier, VerifierTrial
from apps.training.verifier_form import shows_all, spec_of, tree_of
from domain.verifiers import KINDS

pytestmark = pytest.mark.django_db
NEW = "/training/verifiers/new/"
CONTAINS = {"v.kind": "contains", "v.a.texts": "refund\nfive days", "v.a.mode": "any"}
GRADER = "def grade(sample, item):\n    return 1.0\n"


@pytest.fixture
def verifier(project: Project, actor: Actor) -> Verifier:
    return services.verifier_create(
        project=project, name="tone", kind="contains", params={"texts": ["refund"]}, by=actor
    )


def edit(verifier: Verifier) -> str:
    return reverse("training:verifier_edit", args=[verifier.pk])


def test_a_verifier_is_written_in_a_form_made_from_its_parameters(page: Client, project: Project) -> None:
    html = page.get(f"{NEW}?kind=similarity").content.decode()

    for name in ("v.a.metric", "v.a.threshold"):
        assert f'name="{name}"' in html
    assert '<option value="rouge_l">' in html
    answer = page.post(
        NEW,
        {"do": "save", "after": "0", "name": "close", "v.kind": "similarity", "v.a.metric": "bleu",
         "v.a.threshold": "0.4", "note": "First."},
    )  # fmt: skip
    made = Verifier.objects.get()
    assert answer.url == made.get_absolute_url()
    assert (made.params, made.note) == ({"metric": "bleu", "threshold": 0.4}, "First.")


def test_an_edit_makes_the_next_version_and_the_old_one_stays(page: Client, verifier: Verifier) -> None:
    html = page.get(edit(verifier)).content.decode()
    assert "Save version 2" in html

    page.post(edit(verifier), {"do": "save", "after": "1", **CONTAINS})

    newest = Verifier.objects.get(number=2)
    assert newest.params == {"texts": ["refund", "five days"], "mode": "any"}
    verifier.refresh_from_db()
    assert verifier.params == {"texts": ["refund"]}
    shown = page.get(newest.get_absolute_url()).content.decode()
    assert "Changed from v1" in shown
    assert "five days" in shown
    assert "v1" in page.get(f"{newest.get_absolute_url()}?against=1").content.decode()


def test_an_unchanged_form_makes_no_version(page: Client, verifier: Verifier) -> None:
    answer = page.post(
        edit(verifier), {"do": "save", "after": "1", "v.kind": "contains", "v.a.texts": "refund"}, follow=True
    )

    assert "Nothing was changed" in answer.content.decode()
    assert Verifier.objects.count() == 1


def test_a_version_saved_meanwhile_is_not_overwritten_and_nothing_typed_is_lost(
    page: Client, verifier: Verifier, project: Project, actor: Actor
) -> None:
    services.verifier_create(
        project=project, name="tone", kind="contains", params={"texts": ["theirs"]}, by=actor
    )

    answer = page.post(edit(verifier), {"do": "save", "after": "1", **CONTAINS})

    html = answer.content.decode()
    assert answer.status_code == 400
    assert "Version 2 was saved" in html
    assert "five days" in html
    assert 'name="after" value="2"' in html


@pytest.mark.parametrize(
    ("typed", "field", "words"),
    [
        (
            {"v.kind": "regex", "v.a.pattern": "(a+)+$"},
            "v-a-pattern",
            "repeats something that itself repeats",
        ),
        ({"v.kind": "similarity", "v.a.threshold": "much"}, "v-a-threshold", "“much” is not a number"),
        ({"v.kind": "json_fields", "v.a.fields": "{"}, "v-a-fields", "This is no JSON"),
        ({"v.kind": "grader_python", "v.a.source": "x = 1"}, "v-a-source", "must define a function"),
        (
            {"v.kind": "not", "v.part.kind": "regex", "v.part.a.pattern": "("},
            "v-part-a-pattern",
            "no regular expression",
        ),
        (
            {"v.kind": "all", "v.p.3.kind": "exact", "v.p.7.kind": "contains", "v.p.7.a.texts": "a\na"},
            "v-p-7-a-texts",
            "written twice",
        ),
    ],
)
def test_what_is_wrong_is_said_at_its_field(
    page: Client, project: Project, typed: dict[str, str], field: str, words: str
) -> None:
    answer = page.post(NEW, {"do": "save", "name": "x", "after": "0", **typed})

    html = answer.content.decode()
    assert answer.status_code == 400
    after_field = html.split(f'id="{field}"')[1].split('class="field"')[0]
    assert words in after_field
    assert not Verifier.objects.exists()


def test_parts_are_added_and_removed_by_buttons_that_keep_what_was_typed(
    page: Client, project: Project
) -> None:
    typed = {"v.kind": "weighted", "v.a.threshold": "0.5", "v.p.0.kind": "contains", "v.p.0.a.texts": "kept"}

    added = page.post(NEW, {"do": "add:v", **typed}).content.decode()
    removed = page.post(
        NEW, {"do": "remove:v.p.0", **typed, "v.p.1.kind": "exact", "v.p.1.reference": "other"}
    ).content.decode()

    assert 'name="v.p.1.kind"' in added
    assert 'name="v.p.1.weight"' in added
    assert "kept" in added
    assert 'name="v.p.0.kind"' not in removed
    assert "other" in removed


def test_a_composition_of_compositions_is_saved(page: Client, project: Project) -> None:
    page.post(
        NEW,
        {
            "do": "save", "after": "0", "name": "nested", "v.kind": "gate",
            "v.first.kind": "not", "v.first.part.kind": "contains", "v.first.part.a.texts": "sorry",
            "v.then.kind": "weighted", "v.then.a.threshold": "0.5",
            "v.then.p.0.kind": "exact", "v.then.p.0.reference": "yes", "v.then.p.0.weight": "2",
            "v.then.p.1.kind": "numeric", "v.then.p.1.reference": "42",
        },
    )  # fmt: skip

    made = Verifier.objects.get()
    assert made.params == {
        "first": {"kind": "not", "params": {"part": {"kind": "contains", "params": {"texts": ["sorry"]}}}},
        "then": {
            "kind": "weighted",
            "params": {
                "threshold": 0.5,
                "parts": [
                    {"kind": "exact", "params": {}, "reference": "yes", "weight": 2},
                    {"kind": "numeric", "params": {}, "reference": 42},
                ],
            },
        },
    }
    html = page.get(edit(made)).content.decode()
    assert 'name="v.then.p.1.kind"' in html


def test_json_and_form_are_two_views_of_the_same(page: Client, project: Project) -> None:
    as_json = page.post(NEW, {"do": "json", **CONTAINS}).content.decode()
    spec = {"kind": "contains", "params": {"texts": ["a", "b"], "mode": "none"}}
    as_form = page.post(NEW, {"do": "form", "mode": "json", "spec": json.dumps(spec)}).content.decode()

    assert "&quot;five days&quot;" in as_json
    assert '<option value="none" selected>' in as_form


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("{", "This is no JSON"),
        ("[]", "Write an object of two"),
        ('{"kind": "magic", "params": {}}', "no such kind"),
        ('{"kind": "exact", "params": {"normalise": true}}', "normalise"),
        ('{"kind": "exact", "params": {"normalize": NaN}}', "NaN is not allowed"),
        ("[" * 900 + "]" * 900, "nested too deeply"),
        ("[" * 90_000, "nested too deeply"),
    ],
)
def test_json_that_is_no_verifier_is_said_and_kept(
    page: Client, project: Project, spec: str, words: str
) -> None:
    for do in ("form", "save"):
        answer = page.post(NEW, {"do": do, "mode": "json", "name": "x", "after": "0", "spec": spec})
        html = answer.content.decode()
        assert words in html
        assert 'name="spec"' in html
        assert spec.replace('"', "&quot;") in html
    assert not Verifier.objects.exists()


def test_json_saves_what_no_form_shows(page: Client, project: Project) -> None:
    nodes = [{"name": "a", "kind": "exact", "reference": "x"}]
    spec = json.dumps({"kind": "graph", "params": {"nodes": nodes}})

    page.post(NEW, {"do": "save", "mode": "json", "name": "g", "after": "0", "spec": spec})

    assert Verifier.objects.get().params == {"nodes": nodes}


def test_answers_are_tried_and_shown_with_checks_roles_and_reasons(page: Client, project: Project) -> None:
    html = page.post(
        NEW, {"do": "try", **CONTAINS, "v.a.mode": "none", "answers": "A refund soon.\n---\nNo money."}
    ).content.decode()

    assert "answer 2" in html
    assert "&#x27;refund&#x27; stands in the answer." in html
    assert "<td>guard</td>" in html
    assert not Verifier.objects.exists()


def test_a_trial_takes_a_typed_reference_and_says_when_one_is_missing(page: Client, project: Project) -> None:
    base = {"do": "try", "v.kind": "numeric", "answers": "42"}

    without = page.post(NEW, base).content.decode()
    right = page.post(NEW, {**base, "reference": "42"}).content.decode()

    assert "reference" in without.split('id="tried"')[1]
    assert "passed" in right.split('id="tried"')[1]


def test_what_needs_a_worker_is_waited_for_and_then_shown(page: Client, project: Project, store: Any) -> None:
    html = page.post(
        NEW, {"do": "try", "v.kind": "grader_python", "v.a.source": GRADER, "answers": "x"}
    ).content.decode()
    trial = VerifierTrial.objects.get()

    assert "waiting for a worker" in html
    assert WorkUnit.objects.filter(owner=f"feedback.trial:{trial.pk}").exists()
    trial.results = [{"state": "passed", "score": 0.75, "checks": [], "reasons": []}]
    trial.finished_at = trial.started_at
    trial.save()
    shown = page.get(trial.get_absolute_url()).content.decode()
    assert "score 0.75" in shown


def test_a_family_is_given_the_new_version_while_saving(
    page: Client, family: Family, project: Project
) -> None:
    assert family.verifier is not None

    page.post(
        edit(family.verifier),
        {
            "do": "save",
            "after": "1",
            "families": [str(family.pk)],
            "v.kind": "json_fields",
            "v.a.fence": "yes",
        },
    )

    family.refresh_from_db()
    assert family.verifier is not None
    assert (family.verifier.number, family.verifier.params) == (2, {"fence": True})


def test_a_labeller_may_look_and_not_edit(client: Client, page: Client, verifier: Verifier) -> None:
    Membership.objects.update(role=Role.LABELLER)

    statuses = [
        page.get(NEW).status_code,
        page.post(NEW, {"do": "try", **CONTAINS, "answers": "x"}).status_code,
        page.get(edit(verifier)).status_code,
        page.post(edit(verifier), {"do": "save", "after": "1", **CONTAINS}).status_code,
        page.post(reverse("training:verifier_measure", args=[verifier.pk])).status_code,
        page.post(reverse("training:verifier_use", args=[verifier.pk]), {"family": "1"}).status_code,
    ]

    assert statuses == [403] * 6
    html = page.get(verifier.get_absolute_url()).content.decode()
    assert "Edit or try" not in html
    assert Verifier.objects.count() == 1


def test_another_project_s_verifier_and_trial_are_not_found(page: Client, project: Project) -> None:
    foreign = Project.objects.create(name="Other", slug="other")
    theirs = Verifier.objects.create(project=foreign, name="x", kind="exact", created_by="eve")
    trial = VerifierTrial.objects.create(
        project=foreign, kind="exact", items_digest="0" * 64, size=1, started_by="eve"
    )

    assert page.get(edit(theirs)).status_code == 404
    assert page.get(trial.get_absolute_url()).status_code == 404


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_has_a_form(page: Client, project: Project, kind: str) -> None:
    assert page.get(f"{NEW}?kind={kind}").status_code == 200


@pytest.mark.parametrize(
    "spec",
    [
        {"kind": "trace", "params": {"allow_other": False}},
        {"kind": "contains", "params": {"texts": ["two\nlines", "[x"], "ignore_case": False}},
        {"kind": "regex", "params": {"pattern": "a", "flags": ["ignore_case", "dot_all"], "count": 2}},
        {
            "kind": "grader_python",
            "params": {"source": GRADER, "item": {"a": [1, None]}, "pass_threshold": 0.5},
        },
        {"kind": "any", "params": {"parts": [{"kind": "exact", "params": {}, "reference": ["a"]}]}},
    ],
)
def test_a_form_gives_back_what_it_was_made_from(spec: dict[str, Any]) -> None:
    assert shows_all(spec)
    assert spec_of(tree_of(spec)) == (spec, True)


@pytest.mark.parametrize("versions", [2, 7])
def test_pages_of_verifiers_ask_the_database_a_constant_number_of_times(
    page: Client, project: Project, actor: Actor, versions: int, django_assert_num_queries: Any
) -> None:
    for index in range(versions):
        made = services.verifier_create(
            project=project, name="t", kind="contains", params={"texts": [f"a{index}"]}, by=actor
        )
    page.get(made.get_absolute_url())

    with django_assert_num_queries(QUERIES_PAGE):
        page.get(made.get_absolute_url())
    with django_assert_num_queries(QUERIES_LIST):
        page.get(reverse("training:verifiers"))
    with django_assert_num_queries(QUERIES_EDIT):
        page.get(edit(made))


QUERIES_PAGE, QUERIES_LIST, QUERIES_EDIT = 17, 11, 13
