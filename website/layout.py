"""What is around every page: the bar with search, the four parts, the headings of the page, the way on."""

from __future__ import annotations

import posixpath
from html import escape

from website.navigation import HOME, Part, find_address, find_title, list_files, list_parts
from website.rendering import Page, Section

_DOCUMENT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · discreet</title>
<script>document.documentElement.dataset.theme = localStorage.getItem("theme") || ""</script>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{up}static/site.css">
<link rel="stylesheet" href="{up}static/code.css">
<script src="{up}static/site.js" defer></script>
</head>
<body data-up="{up}">
<a class="skip" href="#main">To the page</a>
<header>
<a class="name" href="{up}index.html">discreet</a>
<nav class="parts" aria-label="Parts">{parts}</nav>
<div class="search" role="search">
<input id="search" type="search" placeholder="Search  ( / )" aria-label="Search" autocomplete="off" spellcheck="false">
<ol id="found" hidden></ol>
</div>
<button id="theme" type="button" aria-label="Light or dark" title="Light or dark">◐</button>
</header>
<div class="columns">
<nav class="pages" aria-label="Pages">{pages}</nav>
<main id="main">
{html}
{way}
</main>
<nav class="headings" aria-label="On this page">{headings}</nav>
</div>
<footer>discreet: differential privacy, whole and exact. This site asks no other server for anything.</footer>
</body>
</html>
"""


def lay_out(page: Page, address: str, file: str | None) -> str:
    """The whole document of a page at an address; a page of the navigation has a file."""
    here = next((part for part in list_parts() if file in part.files), None)
    return _DOCUMENT.format(
        title=escape(page.title),
        up="../" * address.count("/"),
        parts="".join(_name_part(part, address, here=part is here) for part in list_parts()),
        pages=_list_pages(address, file, here),
        html=page.html,
        way=_show_way(address, file),
        headings=_list_headings(page.sections),
    )


def find_way(target: str, address: str) -> str:
    """A relative address, so that the site works from any folder.

    >>> find_way("sql.html#joins", "lectures/mean.html")
    '../sql.html#joins'
    """
    name, mark, anchor = target.partition("#")
    return posixpath.relpath(name, posixpath.dirname(address) or ".") + mark + anchor


def _link(file: str, address: str, *, here: bool = False, before: str = "") -> str:
    current = ' aria-current="page"' if here else ""
    return f'<a href="{find_way(find_address(file), address)}"{current}>{before}{escape(find_title(file))}</a>'


def _name_part(part: Part, address: str, *, here: bool) -> str:
    current = ' aria-current="true"' if here else ""
    return f'<a href="{find_way(find_address(part.files[0]), address)}"{current}>{escape(part.title)}</a>'


def _list_pages(address: str, file: str | None, here: Part | None) -> str:
    """All parts as folding lists; the one of this page is open."""
    lists = []
    for part in list_parts():
        groups = "".join(
            f"<p>{escape(group.title)}</p><ul>"
            + "".join(f"<li>{_link(each, address, here=each == file)}</li>" for each in group.files)
            + "</ul>"
            for group in part.groups
        )
        lists.append(
            f"<details{' open' if part is here else ''}><summary>{escape(part.title)}</summary>{groups}</details>"
        )
    return "".join(lists)


def _list_headings(sections: tuple[Section, ...]) -> str:
    shown = [section for section in sections[1:] if section.level in (2, 3)]
    if len(shown) < 2:
        return ""
    items = (
        f'<li class="level{each.level}"><a href="#{each.anchor}">{escape(each.heading)}</a></li>' for each in shown
    )
    return f"<p>On this page</p><ul>{''.join(items)}</ul>"


def _show_way(address: str, file: str | None) -> str:
    files = list_files()
    if file is None or file == HOME:
        return ""
    place = files.index(file)
    back = _link(files[place - 1], address, before="← ")
    on = _link(files[place + 1], address, before="→ ") if place + 1 < len(files) else ""
    return f'<nav class="way" aria-label="Before and after">{back}{on}</nav>'
