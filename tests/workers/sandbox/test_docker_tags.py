"""Which versions of an image an engine keeps, without an engine."""

from typing import Any

from workers.sandbox.docker.image import _forget_old


class Engine:
    def __init__(self, **created: int) -> None:
        self.made = {f"flywheel-sandbox:{tag.replace('_', '-')}": at for tag, at in created.items()}

    def images(self, *, name: str) -> list[dict[str, Any]]:
        return [{"RepoTags": [tag], "Created": at} for tag, at in self.made.items()]

    def remove_image(self, tag: str) -> None:
        del self.made[tag]


def test_the_last_versions_of_each_image_are_kept() -> None:
    engine = Engine(python_a=1, python_b=2, python_c=3, python_d=4, lint_a=1)

    _forget_old(engine, set())

    assert sorted(engine.made.values()) == [1, 2, 3, 4]
    assert "flywheel-sandbox:python-a" not in engine.made


def test_what_was_made_now_is_kept_though_its_layers_are_old() -> None:
    """An engine that still has the layers of a forgotten version gives the new tag their date."""
    engine = Engine(python_a=1, python_b=2, python_c=3, python_d=4)

    _forget_old(engine, {"flywheel-sandbox:python-a"})

    assert "flywheel-sandbox:python-a" in engine.made
