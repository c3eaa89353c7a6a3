"""The page scripts in a real browser: shortcuts, filters, theme, live parts without a socket."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from apps.core.models import ApiKey, Project, User, WorkUnit
from tests.browser import signed_in_tab

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def tab(live_server: Any, client: Client, admin: User, project: Project) -> Iterator[Any]:
    for number, state in enumerate(["failed", "done", "failed"]):
        _unit(project, key=str(number), state=state)
    client.force_login(admin)
    with signed_in_tab(client, live_server.url, color_scheme="light") as page:
        yield page


def _unit(project: Project, **fields: str) -> WorkUnit:
    return WorkUnit.objects.create(
        project=project, kind="eval_batch", owner="evals.run:1", queue="eval", payload={}, **fields
    )


def test_a_sequence_goes_to_its_section(tab: Any) -> None:
    tab.goto("/settings/work/")

    tab.keyboard.press("g")
    tab.keyboard.press("s")

    tab.wait_for_url("**/settings/")


def test_a_form_that_is_sent_twice_is_sent_once(tab: Any) -> None:
    tab.goto("/settings/keys/")
    tab.fill("[name=name]", "checkout")
    tab.check("[name=scopes] >> nth=0")

    sent = tab.evaluate(
        """() => {
            let sent = 0;
            window.addEventListener("submit", (event) => { if (!event.defaultPrevented) sent += 1; });
            const form = document.querySelector("[name=scopes]").form;
            form.requestSubmit();
            form.requestSubmit();
            return sent;
        }"""
    )

    assert sent == 1
    tab.get_by_text("checkout").first.wait_for()
    assert ApiKey.objects.filter(name="checkout").count() == 1


def test_keys_are_text_while_typing(tab: Any) -> None:
    tab.goto("/settings/work/")

    tab.keyboard.press("/")
    tab.keyboard.type("gs?")

    assert tab.input_value("[name=q]") == "gs?"
    assert tab.locator("#keys[open]").count() == 0


def test_the_list_of_keys_shows_what_the_page_declares_and_mutes_the_rest(tab: Any) -> None:
    tab.goto("/settings/work/")

    tab.keyboard.press("?")
    tab.keyboard.press("g")
    tab.keyboard.press("s")

    text = tab.inner_text("#keys")
    assert "Search" in text
    assert "Go to Evals" in text
    assert "/settings/work/" in tab.url


def test_rows_are_walked_with_j_and_k(tab: Any) -> None:
    tab.goto("/settings/work/")
    links = tab.locator("tbody a").all_inner_texts()

    tab.keyboard.press("j")
    tab.keyboard.press("j")
    second = tab.evaluate("document.activeElement.textContent")
    tab.keyboard.press("k")

    assert second == links[1]
    assert tab.evaluate("document.activeElement.textContent") == links[0]


def test_a_filter_changes_list_and_url_together(tab: Any) -> None:
    tab.goto("/settings/work/")

    tab.select_option("[name=state]", "failed")

    tab.wait_for_url("**/settings/work/?state=failed")
    tab.wait_for_function("() => document.querySelectorAll('#list tbody a.mono').length === 2")


def test_the_theme_is_chosen_from_the_menu(tab: Any) -> None:
    tab.goto("/settings/")
    light = tab.evaluate("getComputedStyle(document.body).backgroundColor")

    tab.click("summary[aria-label^=Account]")
    tab.click("button[value=dark]")
    tab.wait_for_selector("html[data-theme=dark]")
    tab.wait_for_load_state()

    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") != light == "rgb(251, 251, 250)"


def test_a_page_without_a_socket_polls_and_keeps_the_focus(tab: Any) -> None:
    tab.goto("/settings/work/")
    tab.locator("[data-live-state=''][data-state=polling]").wait_for()
    tab.keyboard.press("j")
    focused = tab.evaluate("document.activeElement.textContent")
    unit = _unit(Project.objects.get(), key="late")

    tab.locator(f"#list a[href='/settings/work/{unit.pk}/']").wait_for()

    # The focus is given back once the new rows have settled, some milliseconds after they are there.
    tab.wait_for_function("text => document.activeElement.textContent === text", arg=focused)


@pytest.mark.parametrize("path", ["/settings/", "/settings/people/", "/settings/keys/", "/settings/work/"])
def test_nothing_is_wider_than_a_tablet(tab: Any, path: str) -> None:
    tab.set_viewport_size({"width": 768, "height": 1024})

    tab.goto(path)

    assert tab.evaluate("document.documentElement.scrollWidth") <= 768
