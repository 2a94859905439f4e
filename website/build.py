"""Build the whole site into a folder. Nothing is fetched, and nothing in it fetches from elsewhere."""

from __future__ import annotations

import posixpath
import shutil
from html import escape
from pathlib import Path

from pygments.formatters import HtmlFormatter

from website.figures import make_figures
from website.layout import find_way, lay_out
from website.navigation import ROOT, find_address, list_files
from website.rendering import Page, Section, UnreadableMarkdown, colour_file, render_page
from website.search_index import write_index

_STATIC = Path(__file__).parent / "static"
_PASSED_ON = ("http:", "https:", "mailto:", "#")


def build_site(folder: Path) -> int:
    """Write the site; how many pages it has. What was in the folder before is removed, if it was a site."""
    _clear(folder)
    shutil.copytree(_STATIC, folder / "static")  # first of all: it marks the folder as a site
    pages: list[tuple[str, Page]] = []
    sources: set[str] = set()
    for file in list_files():
        address = find_address(file)
        page = _make_page(file, address, sources)
        pages.append((address, page))
        _write(folder / address, lay_out(page, address, file))
    for file in sorted(sources):
        _write_source(folder, file)
    _write(folder / "static" / "code.css", make_code_styles())
    _write(folder / "static" / "sections.js", write_index(pages))
    return len(pages)


def make_code_styles() -> str:
    """Colours of code, for light and for dark."""
    light = HtmlFormatter(style="default").get_style_defs("pre.code")
    dark = HtmlFormatter(style="github-dark").get_style_defs("pre.code")
    chosen = "\n".join(line for line in dark.splitlines() if line.startswith("pre.code"))
    plain = "\n".join(line for line in light.splitlines() if line.startswith("pre.code"))
    by_hand = chosen.replace("pre.code", ":root[data-theme=dark] pre.code")
    by_system = chosen.replace("pre.code", ":root:not([data-theme=light]) pre.code")
    return f"{plain}\n{by_hand}\n@media (prefers-color-scheme: dark) {{\n{by_system}\n}}\n"


def _make_page(file: str, address: str, sources: set[str]) -> Page:
    text = (ROOT / file).read_text(encoding="utf-8")

    def resolve(target: str) -> str:
        return _resolve(target, file, address, sources)

    try:
        return render_page(text, resolve, make_figures(text))
    except UnreadableMarkdown as problem:
        raise UnreadableMarkdown(f"{file}: {problem}") from None


def _resolve(target: str, file: str, address: str, sources: set[str]) -> str:
    """The address of what a link of a page leads to: a page, or a file of the project shown as one."""
    if target.startswith(_PASSED_ON):
        return target
    name, mark, anchor = target.partition("#")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(file), name))
    if path == "README.md":  # its place in the site is the first page
        return find_way("index.html", address)
    if path in list_files():
        return find_way(find_address(path) + mark + anchor, address)
    if not (ROOT / path).is_file():
        raise UnreadableMarkdown(f"{target} leads to no page and no file")
    sources.add(path)
    return find_way(_place_file(path) + mark + anchor, address)


def _place_file(path: str) -> str:
    """Where a file of the project is in the site: a notebook as it is, to be run; others as pages, to be read."""
    return f"files/{path}" if path.endswith(".ipynb") else f"files/{path}.html"


def _write_source(folder: Path, file: str) -> None:
    """A file of the project in the site."""
    name, address = posixpath.basename(file), _place_file(file)
    if not address.endswith(".html"):
        _write(folder / address, (ROOT / file).read_text(encoding="utf-8"))
        return
    code = colour_file(name, (ROOT / file).read_text(encoding="utf-8"))
    page = Page(name, f"<h1>{escape(file)}</h1>\n{code}", (Section(name, name, 1),))
    _write(folder / address, lay_out(page, address, None))


def _clear(folder: Path) -> None:
    if folder.exists():
        if any(folder.iterdir()) and not (folder / "static" / "site.js").is_file():
            raise SystemExit(f"{folder} is there and is no site. Name another folder, or empty it.")
        shutil.rmtree(folder)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
