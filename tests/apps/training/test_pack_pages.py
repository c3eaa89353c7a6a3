"""Pages of installed packs."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.core.models import Event, WorkUnit
from apps.core.permissions import Actor
from apps.feedback import pack_families
from apps.feedback.models import Family
from apps.training.graph_picture import graph_picture
from artifacts import ArtifactStore
from domain.contracts import ChatMessage, FamilyCheck, TaskSpec, VerifierSpec
from packs import registry
from packs.records import record_check
from packs.registry import Pack, PackFamily

NODES = [
    {"name": "net", "kind": "exact", "reference": "1"},
    {"name": "total", "kind": "exact", "reference": "2", "after": ["net"], "weight": 3},
]


def _generate(family: str, *, seed: int, count: int, reserved: bool | None = None) -> list[TaskSpec]:
    if family == "broken":
        raise RuntimeError("no dictionary")
    return [
        TaskSpec(
            id=f"ledger.{family}.{seed}.{index}",
            family=family,
            messages=(ChatMessage(role="user", content=f"Add the ledger {index}."),),
            verifier=VerifierSpec(kind="graph", params={"nodes": NODES}),
        )
        for index in range(count)
    ]


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, store: ArtifactStore) -> None:
    """Beside the starter pack, one that brings a composite family and a broken one."""
    (tmp_path / "README.md").write_text(
        "# Ledgers\n\nBooks with two sides: `net` and **total**.\n\n## Limits\n\n- no <script>x</script>\n"
        "- euros only\n\n```\n$ check\n```\n"
    )
    composite = PackFamily(
        "ledger_year", "Year of a ledger", "All of it.", ("graph",), parts=("ledger_net", "ledger_sum")
    )
    broken = PackFamily("broken", "Broken", "Makes no tasks.", ("exact",), environment="tools")
    pack = Pack(
        name="ledger",
        title="Ledgers",
        families=(composite, broken),
        generate=_generate,
        gold_answer=lambda task: '{"net": "1", "total": "2"}',
        bad_answers=lambda task: {"swapped": '{"net": "2", "total": "1"}'},
        folder=str(tmp_path),
    )
    found = {"ledger": pack, "starter": registry.pack_named("starter")}
    for place in ("packs.registry", "packs.records", "apps.training.views.packs"):
        monkeypatch.setattr(f"{place}.packs", lambda: found)
    monkeypatch.setattr("apps.feedback.pack_families.pack_named", found.__getitem__)
    monkeypatch.setattr("apps.feedback.assets.pack_named", found.__getitem__)
    monkeypatch.setattr("apps.feedback.gauntlet.pack_named", found.__getitem__)
    monkeypatch.setattr(pack_families, "FAMILY_TASKS", 5)


def _check(store: ArtifactStore, name: str, **more: Any) -> None:
    values = {"pack": "starter", "tasks": 5, "gold_pass": 1.0, "noop_pass": 0.0, "bad_pass": 0.0} | more
    record_check(store, FamilyCheck(name=name, checked_at="2026-11-30T10:00:00+00:00", **values))


def test_the_list_shows_every_installed_family_with_its_last_check(
    page: Client, store: ArtifactStore
) -> None:
    _check(store, "invoice_fields")
    _check(store, "tool_call", bad_pass=0.25)

    html = page.get(reverse("training:packs")).content.decode()

    for words in ("Year of a ledger", "2 parts", "Invoice fields", "sound", "not sound", "100", "never"):
        assert words in html


def test_the_list_is_filtered_in_the_address(page: Client, store: ArtifactStore) -> None:
    _check(store, "invoice_fields")
    url = reverse("training:packs")

    sound = page.get(url, {"state": "sound"}).content.decode()
    tools = page.get(url, {"environment": "tools"}).content.decode()
    nothing = page.get(url, {"q": "no such thing"}).content.decode()

    assert "Invoice fields" in sound
    assert "Year of a ledger" not in sound
    assert "Broken" in tools
    assert "Invoice fields" not in tools
    assert "No family matches" in nothing


def test_the_list_pins_its_queries(page: Client, django_assert_max_num_queries: Any) -> None:
    with django_assert_max_num_queries(16):
        page.get(reverse("training:packs"))


def test_a_family_shows_readme_sample_graph_and_check(page: Client, store: ArtifactStore) -> None:
    _check(store, "ledger_year", pack="ledger", gold_pass=0.5, problems=("ledger.1: the good answer fails.",))

    html = page.get(reverse("training:pack_family", args=["ledger_year"])).content.decode()

    assert "Add the ledger 0." in html
    assert "Task graph of 2 parts: net first; total after net" in html
    assert "graph, 75" not in html
    assert "exact, 75%" in html
    assert "Task graph of 3 parts: ledger_net first; ledger_sum after ledger_net" in html
    assert "<h3>Limits</h3>" in html
    assert "&lt;script&gt;" in html
    assert "ledger.1: the good answer fails." in html


def test_a_pack_that_cannot_make_a_task_says_why(page: Client) -> None:
    html = page.get(reverse("training:pack_family", args=["broken"])).content.decode()

    assert "RuntimeError: no dictionary" in html


def test_an_unknown_family_is_not_found(page: Client) -> None:
    assert page.get(reverse("training:pack_family", args=["nothing"])).status_code == 404


def test_adding_a_family_makes_it_and_starts_its_gauntlet(page: Client) -> None:
    answer = page.post(reverse("training:packs_add"), {"family": "ledger_year"})

    family = Family.objects.get()
    assert answer.url == family.get_absolute_url()  # type: ignore[attr-defined]
    assert (family.pack, family.verifier.kind) == ("ledger", "graph")  # type: ignore[union-attr]
    assert WorkUnit.objects.get().kind == "verify_batch"
    html = page.get(family.get_absolute_url()).content.decode()
    assert "Task graph of 2 parts" in html


def test_checking_one_family_or_what_a_filter_shows_makes_a_unit(page: Client) -> None:
    url = reverse("training:packs_check")

    page.post(url, {"family": "ledger_year"})
    page.post(f"{url}?pack=ledger")
    page.post(url)

    families = [unit.payload["families"] for unit in WorkUnit.objects.order_by("pk")]
    assert families == [["ledger_year"], ["ledger_year", "broken"], []]
    assert "Packs are being checked" in page.get(reverse("training:packs")).content.decode()


def test_a_filter_that_nothing_matches_checks_nothing(page: Client) -> None:
    url = reverse("training:packs_check")

    answer = page.post(f"{url}?q=no+such+thing", follow=True).content.decode()
    listed = page.get(reverse("training:packs"), {"q": "no such thing"}).content.decode()

    assert not WorkUnit.objects.exists()
    assert "No family matches the filter, so nothing is checked." in answer
    assert "Check these now" not in listed
    assert "Check these now" in page.get(reverse("training:packs"), {"q": "ledger"}).content.decode()


def test_the_list_and_the_last_check_follow_the_events_of_packs(page: Client) -> None:
    listed = page.get(reverse("training:packs"), {"pack": "ledger"}).content.decode()
    family = page.get(reverse("training:pack_family", args=["ledger_year"])).content.decode()

    for html, place in ((listed, "list"), (family, "last-check")):
        tag = html[html.index(f'id="{place}"') :].partition(">")[0]
        assert 'data-live="feedback.packs"' in tag
        assert f'hx-select="#{place}"' in tag
    assert 'hx-get="/training/packs/?pack=ledger"' in listed


def test_adding_a_family_is_news_of_packs(page: Client) -> None:
    page.post(reverse("training:packs_add"), {"family": "ledger_year"})
    page.post(reverse("training:packs_add"), {"family": "ledger_year"})

    event = Event.objects.get(topic="feedback.packs")
    assert (event.kind, event.data) == ("PackFamilyAdded", {"family": Family.objects.get().pk})
    assert ">added</a>" in page.get(reverse("training:packs")).content.decode()


def test_a_family_whose_pack_is_gone_says_so_on_its_own_page(
    page: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    page.post(reverse("training:packs_add"), {"family": "ledger_year"})
    left = {"starter": registry.pack_named("starter")}
    for place in ("packs.registry", "packs.records", "apps.training.views.packs"):
        monkeypatch.setattr(f"{place}.packs", lambda: left)

    answer = page.get(reverse("training:pack_family", args=["ledger_year"]), follow=True)

    assert answer.redirect_chain == [(Family.objects.get().get_absolute_url(), 302)]
    assert "The pack “ledger” is not installed" in answer.content.decode()


def test_shares_of_a_task_graph_show_a_decimal_where_they_are_no_whole_percent() -> None:
    nodes = [{"name": f"part{place}", "kind": "exact"} for place in range(6)]
    verifier = {
        "kind": "graph",
        "params": {"nodes": [*nodes, {"name": "all", "kind": "python_tests", "weight": 2}]},
    }

    drawn = graph_picture({"verifier": verifier})

    assert drawn is not None
    assert [box.note for box in drawn.boxes] == [*["exact, 12.5%"] * 6, "python tests, 25%"]


def test_names_of_environments_and_verifiers_are_words(page: Client) -> None:
    for url in (reverse("training:packs"), reverse("training:pack_family", args=["ledger_year"])):
        html = page.get(url).content.decode()

        assert "single turn" in html
        assert ">single_turn<" not in html


def test_readers_may_look_and_not_act(viewer: Actor) -> None:
    client = Client()
    client.force_login(viewer.user)  # type: ignore[arg-type]

    assert "Check all now" not in client.get(reverse("training:packs")).content.decode()
    assert client.post(reverse("training:packs_check")).status_code == 403
    assert client.post(reverse("training:packs_add"), {"family": "ledger_year"}).status_code == 403
    assert not WorkUnit.objects.exists()


def test_a_pack_that_cannot_be_loaded_is_named_with_its_reason(page: Client, monkeypatch) -> None:
    monkeypatch.setattr(
        "apps.training.views.packs.broken_packs", lambda: {"payroll": "SyntaxError: invalid syntax"}
    )

    html = page.get(reverse("training:packs")).content.decode()

    assert "The pack “payroll” is installed but cannot be loaded" in html
    assert "SyntaxError: invalid syntax" in html
