"""The two pictures of the README: an answer in the terminal, and a page of the site. python -m website.readme_pictures.

The answer is that of a new demo, so its noise differs from run to run. The page is drawn by Chromium.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

from PIL import Image

from discreet import demo
from website.build import build_site
from website.navigation import ROOT

FOLDER = ROOT / "docs" / "pictures"
"""Where the pictures are."""
QUESTION = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC"
_PAGE, _SIZE = "lectures/randomized-response.html", (1200, 760)
_WIDTH, _LINE, _EDGE = 8.43, 20, 20
"""The width of a letter, the height of a line, and the space around them."""


def draw_terminal(lines: list[str]) -> str:
    """Lines of a terminal as SVG, without a font of its own: letters are placed by the width of each line."""
    width = 2 * _EDGE + round(_WIDTH * max(map(len, lines)))
    height = 2 * _EDGE + _LINE * len(lines)
    rows = "\n".join(_draw_line(line, number) for number, line in enumerate(lines) if line.strip())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
        f'<rect width="{width}" height="{height}" rx="10" fill="#14191e"/>\n'
        f'<g font-family="ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" fill="#e6ebef">\n'
        f"{rows}\n</g>\n</svg>\n"
    )


def _draw_line(line: str, number: int) -> str:
    place = _EDGE + _LINE * number + 14
    colour = ' fill="#7fc1ee"' if line.startswith("$") else ""
    length = round(_WIDTH * len(line), 1)
    line = line.replace("$  ", "   ")  # a command goes on
    return f'<text x="{_EDGE}" y="{place}" xml:space="preserve" textLength="{length}"{colour}>{escape(line)}</text>'


def ask_demo(folder: Path) -> list[str]:
    """What a person sees who asks the demo's first question."""
    codebook = demo.write(folder)
    words = [sys.executable, "-m", "discreet.cli.main", "ask", str(codebook), QUESTION, "--epsilon", "0.5"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "90"})  # noqa: S603  # our own program
    shown = [line.rstrip() for line in done.stdout.strip("\n").splitlines()]
    return ["$ discreet ask demo/hospital.toml --epsilon 0.5 \\", f'$   "{QUESTION}"', *shown]


def photograph(folder: Path, target: Path) -> None:
    """A page of the site as Chromium shows it."""
    build_site(folder / "site")
    window = f"--window-size={_SIZE[0]},{_SIZE[1]}"
    page = (folder / "site" / _PAGE).as_uri()
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", window, f"--screenshot={target}"]
    words = ["chromium", *flags, page]
    subprocess.run(words, check=True, capture_output=True)  # noqa: S603  # our own page
    with Image.open(target) as drawn:
        drawn.convert("RGB").quantize(64).save(target, optimize=True)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        (FOLDER / "answer.svg").write_text(draw_terminal(ask_demo(Path(name) / "demo")), encoding="utf-8")
        photograph(Path(name), FOLDER / "page.png")
