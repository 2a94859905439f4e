"""Build the site: python -m website [FOLDER]."""

from __future__ import annotations

import sys
from pathlib import Path

from website.build import build_site


def main() -> None:
    """Write the site to a folder, by default to site/, and say where its first page is."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "site")
    written = build_site(folder)
    sys.stdout.write(f"{written} pages. Open {folder / 'index.html'}\n")


if __name__ == "__main__":
    main()
