"""Pages of packs on a tablet, and what changes on them without a reload, in a real browser."""

from typing import Any

import pytest

from apps.core.events import publish
from apps.core.models import Project
from artifacts import ArtifactStore
from domain.contracts import FamilyCheck
from packs.records import record_check
from packs.registry import packs
from tests.apps.training.test_trajectory_browser import tab  # noqa: F401

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("project", "actor"),
]

TABLET = {"width": 768, "height": 1024}
HEADINGS = """() => [...document.querySelectorAll(".pack-cols section")]
    .sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)
    .map((section) => section.querySelector("h2").textContent)"""


def _check(store: ArtifactStore, name: str, pack: str) -> None:
    figures: dict[str, Any] = {"tasks": 1200, "gold_pass": 1.0, "noop_pass": 0.0, "bad_pass": 0.25}
    record_check(store, FamilyCheck(name=name, pack=pack, checked_at="2026-11-30T10:00:00+00:00", **figures))


def test_the_table_of_packs_fits_a_tablet(tab: Any, store: ArtifactStore) -> None:  # noqa: F811
    for pack in packs().values():
        for family in pack.families:
            _check(store, family.name, pack.name)

    tab.set_viewport_size(TABLET)
    tab.goto("/training/packs/")

    has, needs = tab.evaluate(
        "() => { const t = document.querySelector('.pack-rows'); return [t.clientWidth, t.scrollWidth]; }"
    )
    assert needs <= has


def test_the_readme_of_a_pack_comes_last_on_a_tablet(tab: Any) -> None:  # noqa: F811
    tab.set_viewport_size(TABLET)
    tab.goto(f"/training/packs/{packs()['coding'].families[0].name}/")

    headings = tab.evaluate(HEADINGS)

    assert headings[-3:-1] == ["About", "Last check"]
    assert headings[-1].startswith("About the pack")


def test_the_last_check_of_a_family_appears_without_a_reload(
    tab: Any,  # noqa: F811
    project: Project,
    store: ArtifactStore,
) -> None:
    tab.goto("/training/packs/invoice_fields/")
    assert "Never checked here." in tab.locator("#last-check").inner_text()

    _check(store, "invoice_fields", "starter")
    publish(project=project, topic="feedback.packs", kind="PackCheckFinished", families=1)

    tab.wait_for_selector("#last-check dl")
    assert "1,200" in tab.locator("#last-check").inner_text()
