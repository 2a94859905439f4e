"""Rewrite the pages of docs/reference from the code: python -m website.reference."""

from __future__ import annotations

from website.navigation import ROOT
from website.reference import PAGES

if __name__ == "__main__":
    for name, write in PAGES.items():
        (ROOT / "docs" / "reference" / f"{name}.md").write_text(write(), encoding="utf-8")
