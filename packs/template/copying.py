"""A new pack from the template: one folder that can be installed as it is."""

import keyword
import re
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from packs.registry import GROUP

FILES = Path(__file__).with_name("files")
PLACEHOLDER = "template_pack"
SUFFIX = ".template"
_NAME = re.compile(r"[a-z][a-z0-9_]{1,40}")


class UnfitName(ValueError):
    """The name cannot be that of a pack. The text is for users."""


class FolderTaken(ValueError):
    """Something is in the folder already. The text is for users."""


def copy_template(name: str, folder: Path) -> list[Path]:
    """Write the template to ``folder`` under ``name``; the files written. Raises ``UnfitName`` and
    ``FolderTaken``, and then writes nothing."""
    if not _NAME.fullmatch(name) or keyword.iskeyword(name) or name in ("packs", PLACEHOLDER):
        raise UnfitName(
            f"{name!r} cannot be a pack's name. Use lower-case letters, digits and _, for example acme_units."
        )
    if entry_points(group=GROUP, name=name) or name in sys.stdlib_module_names or find_spec(name):
        raise UnfitName(f"{name!r} is taken: a module or a pack is called so already. Choose another name.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FolderTaken(f"{folder} is not empty. Choose another folder: --folder")
    written = []
    for source in sorted(FILES.rglob(f"*{SUFFIX}")):
        place = folder / str(source.relative_to(FILES)).removesuffix(SUFFIX).replace(PLACEHOLDER, name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(source.read_text(encoding="utf-8").replace(PLACEHOLDER, name), encoding="utf-8")
        written.append(place)
    return written
