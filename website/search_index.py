"""The words of all pages as one script, so that the search needs no server and no network."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from website.rendering import Page


def write_index(pages: Iterable[tuple[str, Page]]) -> str:
    """A script with every section: its address, the title of its page, its heading, its words."""
    rows = [row for address, page in pages for row in _list_rows(address, page)]
    return f"window.sections = {json.dumps(rows, ensure_ascii=False, separators=(',', ':'))};\n"


def _list_rows(address: str, page: Page) -> Iterator[tuple[str, str, str, str]]:
    for number, section in enumerate(page.sections):
        place = f"{address}#{section.anchor}" if number else address
        yield place, page.title, section.heading, " ".join(" ".join(section.words).split())
