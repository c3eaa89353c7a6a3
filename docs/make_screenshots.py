"""Photograph every page of a running installation, light and dark, at 1440 px; and again at 768 px.

    python docs/make_screenshots.py http://127.0.0.1:8000 USER PASSWORD

Pages are found, not listed: from the sections in the rail along tabs, side lists, header links and
the first row of every table. A page that answers with an error or breaks a script makes the
command fail; one that scrolls sideways, or whose chart was not drawn, is named.
Chromium comes from $CHROMIUM or /usr/bin/chromium.
"""

import argparse
import io
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Error, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
WIDE, NARROW = 1440, 768
MAX_HEIGHT = 2200
DEPTH = 4

# Links worth following, and the first row of each table, whose link leads to a detail page.
_FOLLOW = """() => {
  const links = [...document.querySelectorAll(
    '.rail-nav a, .tabs a, .side a, .acts a, .stage[href], .crumb a')];
  for (const body of document.querySelectorAll('table[data-rows] tbody')) {
    links.push(...[...body.querySelectorAll('tr:first-child a')].slice(0, 3));
  }
  for (const list of document.querySelectorAll('.lineage')) links.push(...list.querySelectorAll('a'));
  return links.map((link) => link.href);
}"""
_DRAWN = """() => [...document.querySelectorAll('[data-chart] [data-plot]')]
  .every((plot) => plot.childElementCount > 0)"""
# Fonts and pictures are there, and the browser has painted twice.
_SETTLED = """async () => {
  await document.fonts.ready;
  const seen = [...document.images].map((image) => {
    image.loading = "eager";
    return image.decode().catch(() => {});
  });
  await Promise.race([Promise.all(seen), new Promise((done) => setTimeout(done, 3000))]);
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""
_UNLINKED = ("/account/password/", "/projects/new/")  # reached from menus only
_PRIVATE = re.compile(r"^/(api|static|logout|ws|v1)(/|$)")


@dataclass
class Tour:
    """What one walk saw: ``paths`` in order, each once per kind of page, and what was wrong."""

    paths: dict[str, str] = field(default_factory=dict)  # name -> path
    problems: list[str] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(description="photograph every page, light and dark")
    parser.add_argument("url", nargs="?", default=os.environ.get("FLYWHEEL_URL", "http://127.0.0.1:8000"))
    parser.add_argument("user", nargs="?", default=os.environ.get("FLYWHEEL_USER", "admin"))
    parser.add_argument("password", nargs="?", default=os.environ.get("FLYWHEEL_PASSWORD", ""))
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "screenshots")
    parser.add_argument("--narrow-out", type=Path, default=ROOT / "var" / "screenshots-768")
    parser.add_argument(
        "--also",
        nargs="*",
        default=[],
        help="further paths that no link leads to; NAME=PATH for one whose kind is shown already",
    )
    arguments = parser.parse_args()
    tour = Tour()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"),
            args=["--no-sandbox", "--disable-background-networking", "--disable-component-update"],
        )
        for theme in ("light", "dark"):
            for width, folder in ((WIDE, arguments.out), (NARROW, arguments.narrow_out)):
                _walk(browser, arguments, tour, theme, width, folder)
        browser.close()
    size = sum(path.stat().st_size for path in arguments.out.glob("*.png"))
    print(f"{len(tour.paths)} pages in {arguments.out}, {size / 1e6:.1f} MB")
    for problem in sorted(set(tour.problems)):
        print(problem, file=sys.stderr)
    return 1 if tour.problems else 0


def _walk(browser: Any, arguments: Any, tour: Tour, theme: str, width: int, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    context = browser.new_context(
        base_url=arguments.url,
        viewport={"width": width, "height": 900},
        color_scheme=theme,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.set_default_timeout(20_000)
    page.on("pageerror", lambda error: tour.problems.append(f"script error on {page.url}: {error}"))
    written = set()

    def shoot(name: str) -> None:
        written.add(_photograph(page, folder / f"{name}-{theme}.png", width))

    page.goto("/login/")
    shoot("login")
    page.fill("[name=username]", arguments.user)
    page.fill("[name=password]", arguments.password)
    page.click("main button")
    page.wait_for_load_state()
    if page.locator("[name=password]").count():
        raise SystemExit("The login was refused.")
    before = _choose_theme(page, theme)
    if tour.paths:  # every later walk takes the way of the first
        for name, path in tour.paths.items():
            _open(page, path, tour)
            shoot(name)
    else:
        for name in _explore(page, tour, ["/", *_UNLINKED, *arguments.also]):
            shoot(name)
    page.goto("/there-is-nothing-here/")
    shoot("not-found")
    page.goto("/settings/work/")
    page.keyboard.press("?")
    shoot("keyboard")
    for stale in set(folder.glob(f"*-{theme}.png")) - written:
        stale.unlink()
    _choose_theme(page, before)
    context.close()


def _choose_theme(page: Any, theme: str) -> str:
    """Save ``theme`` for the user; returns the one that was chosen before."""
    page.goto("/settings/appearance/")
    before: str = page.get_attribute("main input[name=theme]:checked", "value")
    page.check(f"main input[name=theme][value={theme}]")
    page.click("main form button")
    page.wait_for_load_state()
    return before


def _explore(page: Any, tour: Tour, start: list[str]) -> Iterator[str]:
    """Breadth first; yields the name of each kind of page while it is open."""
    queue = [(path, 0) for path in start]
    while queue:
        path, depth = queue.pop(0)
        given = re.match(r"([\w-]+)=(/.*)", path)
        name, path = given.groups() if given else (_name(path), path)
        if name in tour.paths or not _open(page, path, tour):
            continue
        tour.paths[name] = path
        yield name
        if depth == DEPTH:
            continue
        for link in page.evaluate(_FOLLOW):
            parts = urlsplit(link)
            if parts.netloc == urlsplit(page.url).netloc and not _PRIVATE.match(parts.path):
                queue.append((parts.path, depth + 1))


def _open(page: Any, path: str, tour: Tour) -> bool:
    try:
        response = page.goto(path)
    except Error as error:
        if "Download is starting" in error.message:
            return False
        raise
    content = response.headers.get("content-type", "") if response else ""
    if "text/html" not in content:
        return False
    if response.status >= 400:
        tour.problems.append(f"{response.status} at {path}")
        return False
    return True


def _name(path: str) -> str:
    """``/evals/runs/12/`` → ``evals-runs-one``: pages of one kind share a name."""
    parts = ["one" if re.search(r"\d", part) else part for part in urlsplit(path).path.strip("/").split("/")]
    return "-".join(part for part in parts if part) or "loop"


def _photograph(page: Any, target: Path, width: int) -> Path:
    page.evaluate(_SETTLED)
    try:
        page.wait_for_function(_DRAWN, timeout=10_000)
    except Exception:
        print(f"a chart was not drawn on {page.url}", file=sys.stderr)
    excess = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    if excess > 0:
        print(f"{page.url} is {excess} px wider than {width} px", file=sys.stderr)
    height = min(MAX_HEIGHT, max(900, page.evaluate("document.documentElement.scrollHeight")))
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_timeout(150)
    target.write_bytes(_smaller(page.screenshot()))
    page.set_viewport_size({"width": width, "height": 900})
    return target


def _smaller(png: bytes) -> bytes:
    """At most 256 colours where Pillow is installed: these pictures are committed."""
    try:
        from PIL import Image
    except ModuleNotFoundError:
        return png
    buffer = io.BytesIO()
    image = Image.open(io.BytesIO(png)).convert("RGB")
    image.quantize(colors=256, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    return min(png, buffer.getvalue(), key=len)


if __name__ == "__main__":
    raise SystemExit(main())
