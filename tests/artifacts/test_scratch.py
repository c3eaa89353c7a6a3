"""Small objects beside the artifacts that come and go."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from artifacts import ArtifactStore, Scratch


@pytest.fixture(params=["file", "memory"])
def scratch(request: pytest.FixtureRequest, tmp_path: Path) -> Scratch:
    url = f"file://{tmp_path}/store" if request.param == "file" else f"memory://{tmp_path.name}"
    return Scratch(ArtifactStore(url))


def test_what_was_put_is_found_by_name_and_goes_when_removed(scratch: Scratch) -> None:
    scratch.put("journals/a/1", b"one")
    scratch.put("journals/b/2", b"two")
    assert scratch.names("journals/a") == ["journals/a/1"]
    assert scratch.get("journals/a/1") == b"one"

    scratch.remove("journals/a/1")
    scratch.remove("journals/a/1")

    assert scratch.get("journals/a/1") is None
    assert scratch.names("journals/a") == []
    assert scratch.names("never") == []


def test_age_is_counted_from_the_writing(scratch: Scratch) -> None:
    scratch.put("x/1", b"")

    age_s = scratch.age_s("x/1", datetime.now(UTC) + timedelta(hours=1))

    assert age_s is not None
    assert 3500 < age_s < 3700
    assert scratch.age_s("x/2", datetime.now(UTC)) is None


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/x", "", "a//b", ".x"])
def test_a_name_cannot_lead_out(scratch: Scratch, name: str) -> None:
    with pytest.raises(ValueError, match="not a name"):
        scratch.put(name, b"")
