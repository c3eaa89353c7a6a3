"""A signed-in tab of a real Chromium. Every test has a browser of its own, so that one that hangs or dies
takes no other test with it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.test import Client

from tests.waiting import GUARD_S

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
# Containers often have a /dev/shm of 64 MB and no GPU: a renderer that runs out of the one or looks for
# the other dies or stands still.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-gpu",
)

# Playwright runs an event loop in the test's thread; the tests use the database beside it.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"


@contextmanager
def signed_in_tab(client: Client, base_url: str, **context: Any) -> Iterator[Any]:
    """A page with the session of ``client``; a script error on any page fails the test.

    ``context`` goes to Playwright's ``new_context``.
    """
    from playwright.sync_api import sync_playwright

    name = settings.SESSION_COOKIE_NAME
    errors: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=list(ARGUMENTS), timeout=1000 * GUARD_S
        )
        opened = browser.new_context(base_url=base_url, **context)
        opened.add_cookies([{"name": name, "value": client.cookies[name].value, "url": base_url}])
        page = opened.new_page()
        page.set_default_timeout(1000 * GUARD_S)
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page
        browser.close()
    assert errors == []
