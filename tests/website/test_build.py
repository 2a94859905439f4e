"""The built site: every page, link, anchor and figure is there, and nothing is asked of anybody else."""

from __future__ import annotations

import json
import re
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from website.build import build_site
from website.figures import PICTURE
from website.navigation import ROOT, find_address, list_files, list_parts

from tests.service.pages.browser import CHROMIUM, Tab, open_tab

with_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed here")
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "use": "xlink:href"}


class Outline(HTMLParser):
    """What a document leads to, what it loads, and the names in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.names: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.names += [found["id"]] if "id" in found else []
        self.links += [found["href"]] if tag == "a" else []
        self.loaded += [found[LOADED[tag]]] if LOADED.get(tag, "") in found else []


def find_broken(folder: Path) -> list[str]:
    """Links that lead to no file, anchors that are on no page, and names that are there twice."""
    outlines = {path.resolve(): Outline(path.read_text()) for path in folder.rglob("*.html")}
    broken = []
    for path, outline in outlines.items():
        broken += [f"{path.name}: {name} twice" for name in set(outline.names) if outline.names.count(name) > 1]
        for link in [*outline.links, *outline.loaded]:
            if link.startswith(("http:", "https:", "mailto:", "data:")):
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / unquote(name)).resolve() if name else path
            if not target.is_file() or (anchor and unquote(anchor) not in outlines[target].names):
                broken.append(f"{path.name}: {link}")
    return broken


def find_foreign(text: str) -> list[str]:
    """Addresses elsewhere that a document would load by itself. Links that a reader may follow are not among them."""
    loaded = [target for target in Outline(text).loaded if not re.match(r"data:|[\w./#-]+$", target)]
    return loaded + re.findall(r"(?:url\(|@import|fetch\(|import\()[^)]*https?:[^)]*", text)


def test_every_page_of_the_project_is_in_the_site(site: Path) -> None:
    """Nothing in docs is forgotten, and every page is in one part."""
    files = list_files()
    assert set(files) >= {f"docs/{path.relative_to(ROOT / 'docs')}" for path in (ROOT / "docs").rglob("*.md")}
    assert len(files) == len(set(files)) and len(list_parts()) == 4
    assert all((site / find_address(file)).is_file() for file in files)


def test_every_link_and_anchor_leads_somewhere(site: Path) -> None:
    assert find_broken(site) == []


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    """In documents, sheets and scripts; the browser checks the same below."""
    assert [path.name for path in site.rglob("*.html") if find_foreign(path.read_text())] == []
    for path in (site / "static").glob("*"):
        assert path.name == "sections.js" or "http" not in path.read_text(), path.name


def test_the_checks_can_fail(tmp_path: Path) -> None:
    """Negative control: a broken link, a broken anchor, a name that is there twice, a font from elsewhere."""
    (tmp_path / "a.html").write_text('<a href="b.html"></a><a href="#x"></a><p id="y"></p><p id="y"></p>')
    assert find_broken(tmp_path) == ["a.html: y twice", "a.html: b.html", "a.html: #x"]
    assert find_foreign('<link href="https://fonts.example/a.css">') == ["https://fonts.example/a.css"]
    assert find_foreign("<style>@import url(https://fonts.example/a.css)</style>") != []


def test_figures_are_drawn_by_their_pages(site: Path) -> None:
    """As many as there are marks; each with words for those who do not see it, and in the colours of the site."""
    drawn = 0
    for file in list_files():
        marks = [" ".join(mark.split()) for mark in PICTURE.findall((ROOT / file).read_text())]
        page = (site / find_address(file)).read_text()
        figures = re.findall(r'<figure class="drawn">.*?</figure>', page, re.S)
        assert [re.findall(r"<figcaption>(.*?)</figcaption>", figure)[0] for figure in figures] == marks, file
        for figure in figures:
            assert figure.count("<path") > 20 and "var(--on)" in figure and 'aria-label="' in figure
            assert set(re.findall(r"#[0-9a-f]{6}\b", figure)) == set(), file
        drawn += len(figures)
    assert drawn >= 16


def test_the_index_has_every_section(site: Path) -> None:
    """Headings of all pages are in it, with an address that exists."""
    script = (site / "static" / "sections.js").read_text()
    rows = json.loads(script.removeprefix("window.sections = ").rstrip(";\n"))
    assert {row[0].partition("#")[0] for row in rows} == {find_address(file) for file in list_files()}
    assert any(row[2] == "The Laplace mechanism" and "scale b" in row[3] for row in rows)


def test_another_folder_is_not_emptied(tmp_path: Path) -> None:
    """Only a site is replaced by a site."""
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(SystemExit, match="no site"):
        build_site(tmp_path)
    assert (tmp_path / "thesis.txt").is_file()


def search(tab: Tab, words: str) -> list[str]:
    """Type into the search; the addresses that it finds, from the site's folder."""
    tab.write("#search", words)
    tab.wait("!document.querySelector('#found').hidden")
    tab.wait(f"document.querySelector('#search').value === {json.dumps(words)}")
    found: list[str] = tab.run("[...document.querySelectorAll('#found a')].map(link => link.getAttribute('href'))")
    return [address.removeprefix("../") for address in found]


def keep_dark(tab: Tab, address: str) -> None:
    """Open a page that must still be dark. A page that is left at once may take what it stored along: choose again."""
    dark = "document.documentElement.dataset.theme === 'dark'"
    deadline = time.monotonic() + 60
    tab.go(address)
    while not tab.run(dark):
        assert time.monotonic() < deadline, "the choice was never kept"
        tab.press("#theme", dark)
        time.sleep(1)
        tab.go(address)


@with_browser
def test_readers_find_their_way(site: Path, tmp_path: Path) -> None:
    """From files, without a server: search, light and dark, a phone; and no request leaves the folder."""
    with open_tab(tmp_path) as tab:
        tab.show(dark=False, width=1300)
        tab.go((site / "lectures" / "laplace.html").as_uri())
        found = search(tab, "hockey stick")
        assert found and any(address.startswith("lectures/") for address in found)
        assert search(tab, "ε with δ")[0].partition("#")[0] == "lectures/approximate.html"
        assert search(tab, "xylophone") == []
        search(tab, "budget-exceeded")
        tab.press("#found a", "!location.href.includes('laplace') && document.readyState === 'complete'")
        light = tab.run("getComputedStyle(document.body.parentElement).backgroundColor")
        tab.press("#theme", "document.documentElement.dataset.theme === 'dark'")
        assert tab.run("getComputedStyle(document.body.parentElement).backgroundColor") != light
        keep_dark(tab, (site / "index.html").as_uri())
        tab.show(dark=True, width=380)
        for name in ("index.html", "lectures/exponential.html", "reference/commands.html", "how-to/move-here.html"):
            tab.go((site / name).as_uri())
            assert tab.run("document.documentElement.scrollWidth") <= 380, f"{name} is wider than a phone"
        assert tab.complaints == []
        assert {address.partition(":")[0] for address in tab.addresses} <= {"file", "data", "about"}
        assert all(str(site) in address for address in tab.addresses if address.startswith("file:"))
