"""Cases with pictures: in by a file, seen on the pages, out by the same file."""

import json

import pytest

from apps.core.errors import Refused
from apps.evals import services
from packs.visual import PACK
from tests.apps.evals.conftest import text

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


@pytest.fixture
def tasks():
    return PACK.generate("chart_value", seed=1, count=2)


@pytest.fixture
def file(tasks) -> bytes:
    rows = [task.model_dump(mode="json", exclude_defaults=True) for task in tasks]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def test_pictures_are_imported_only_where_they_are_said_to_be_fine(project, actor, file):
    with pytest.raises(Refused, match="image"):
        services.suite_import_jsonl(project=project, name="Charts", filename="c.jsonl", data=file, by=actor)

    made = services.suite_import_jsonl(
        project=project, name="Charts", filename="c.jsonl", data=file, by=actor, keep_personal_data=True
    )

    assert made.version.count == 2


def test_an_export_with_pictures_imports_to_the_same_version(project, actor, file):
    fields = {"project": project, "name": "Charts", "filename": "c.jsonl", "by": actor}
    made = services.suite_import_jsonl(**fields, data=file, keep_personal_data=True).version

    again = services.suite_export_jsonl(suite_version=made)

    assert services.suite_import_jsonl(**fields, data=again, keep_personal_data=True).version == made


def test_the_page_of_a_result_shows_the_picture(project, actor, tasks, start, finish, page):
    suite = services.suite_create(project=project, name="Charts", by=actor)
    made = services.suite_version_create(suite=suite, tasks=tasks, by=actor)
    run = start(suite_version=made)
    finish(run)

    shown = page.get(run.results.first().get_absolute_url())

    url = tasks[0].messages[-1].content[1]["image_url"]["url"]
    assert f'<img src="{url}"' in shown.content.decode()
    assert "img-src 'self' data:" in shown.headers["Content-Security-Policy"]
    assert "How many" in text(shown)


def test_the_list_of_cases_shows_the_words_beside_a_picture(project, actor, tasks, page):
    suite = services.suite_create(project=project, name="Charts", by=actor)
    made = services.suite_version_create(suite=suite, tasks=tasks, by=actor)

    shown = text(page.get(made.get_absolute_url()))

    assert '<td class="clip">How many' in shown
    assert "image_url" not in shown
