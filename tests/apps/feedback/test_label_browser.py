"""The labelling screen in a real browser: keys, and a network that drops."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone

from apps.core.models import Membership, Project, Role, User
from apps.feedback.models import Capture, FailureCase, Label
from tests.browser import signed_in_tab

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# The page takes over what it fetched ahead without a sign; this gives one, right afterwards.
SAYS_WHEN_FETCHED_AHEAD = """
const plain = window.fetch;
window.fetch = async (...given) => {
  const answer = await plain(...given);
  const text = answer.text.bind(answer);
  answer.text = async () => {
    const said = await text();
    if (String(given[0]).includes("/label/next/"))
      setTimeout(() => { document.body.dataset.fetchedAhead = "yes"; });
    return said;
  };
  return answer;
};
"""


@pytest.fixture
def screen(live_server, client) -> Iterator[Any]:
    """The label screen of a project with three cases, on the first of them."""
    user = User.objects.create_user("ada", password="correct horse battery")
    project = Project.objects.create(name="Billing", slug="billing")
    Membership.objects.create(project=project, user=user, role=Role.ADMIN)
    for i in range(3):
        capture = Capture.objects.create(
            project=project,
            external_id=f"c{i}",
            source="api",
            state="anonymized",
            raw_expires_at=timezone.now(),
            content={"messages": [{"role": "user", "content": f"Bill {i}"}], "answer": "wrong"},
        )
        FailureCase.objects.create(project=project, capture=capture, title=f"Bill {i}")
    client.force_login(user)
    with signed_in_tab(client, live_server.url) as page:
        page.add_init_script(SAYS_WHEN_FETCHED_AHEAD)
        page.goto("/failures/label/")
        page.wait_for_function("() => document.querySelector('#label-case') !== null")
        page.wait_for_function("() => document.body.dataset.fetchedAhead === 'yes'")
        yield page


def case_on(page: Any) -> int:
    return int(page.get_attribute("#label-case", "data-case"))


def test_keys_decide_and_the_next_case_is_there_at_once(screen):
    first = case_on(screen)

    screen.keyboard.press("2")
    screen.keyboard.press("s")
    with screen.expect_response(f"**/label/{first}/"):
        screen.keyboard.press("Control+Enter")
        assert case_on(screen) != first
    screen.wait_for_selector(f"#recent a:text-is('{first}')")

    label = Label.objects.get()
    assert (label.case_id, label.kind, label.severity) == (first, "missing_content", "minor")


def test_dropped_network_loses_nothing_and_says_so(screen):
    first = case_on(screen)
    screen.context.set_offline(True)

    screen.keyboard.press("1")
    screen.keyboard.press("s")
    screen.fill("#correction", "my own words")
    screen.keyboard.press("Control+Enter")
    screen.wait_for_selector("#flashes >> text=your draft is kept")
    assert case_on(screen) == first
    assert screen.input_value("#correction") == "my own words"

    screen.context.set_offline(False)
    screen.reload()
    assert case_on(screen) == first
    assert screen.input_value("#correction") == "my own words"
    assert not Label.objects.exists()
