"""A pair of laws as a figure of four panels: both laws, the loss at each output, how often it occurs, the trade-off.

Needs the extra ``plots`` (matplotlib), which is loaded when the first figure is drawn.
"""

from __future__ import annotations

import io
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import UsageError
from discreet.pictures.law_pair import LawPair

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ON, _BESIDE, _QUIET = "#2563a6", "#c8651b", "#8a8f98"
_FEW = 60
"""Up to so many outputs are drawn as bars, more as a line."""
FORMATS = (".svg", ".png", ".pdf")
"""The endings of files that a figure can be written to."""
STYLE: Any = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e5e8",
    "axes.axisbelow": True,
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "svg.hashsalt": "discreet",  # the same picture has the same bytes
    "svg.fonttype": "path",
}
"""How every figure of the project looks."""


def check_installed() -> None:
    """Refuse to draw where matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise UsageError("Pictures need matplotlib. Install it: pip install 'discreet[plots]'.")


def draw_figure(*pairs: LawPair) -> Figure:
    """One row of four panels for each pair."""
    check_installed()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    if not pairs:
        raise UsageError("There is nothing to draw. Give at least one pair of laws.")
    with rc_context(STYLE):
        figure = Figure(figsize=(12, 3.4 * len(pairs) + 0.2), layout="constrained")
        for pair, part in zip(pairs, figure.subfigures(len(pairs), 1, squeeze=False)[:, 0]):
            part.suptitle(pair.about, x=0.01, ha="left", fontweight="bold")
            panels = part.subplots(1, 4)
            for panel, draw in zip(panels, (_draw_laws, _draw_losses, _draw_loss_law, _draw_trade_off)):
                draw(panel, pair)
    return figure


def save_figure(path: str | Path, *pairs: LawPair) -> None:
    """Write the figure of some pairs to a file; its ending says the format: .svg, .png or .pdf."""
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise UsageError(f"{target.name} does not end in {' or '.join(FORMATS)}. Name it for example laws.svg.")
    content = encode_figure(draw_figure(*pairs), target.suffix.lower().removeprefix("."))
    try:
        target.write_bytes(content)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}.") from None


def encode_figure(figure: Figure, kind: str) -> bytes:
    """A figure as the bytes of a file, without a date: the same figure has the same bytes."""
    from matplotlib import rc_context

    buffer, undated = io.BytesIO(), {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with rc_context(STYLE):
        figure.savefig(buffer, format=kind, dpi=120, metadata=undated.get(kind, {}))
    return buffer.getvalue()


def _find_places(pair: LawPair) -> tuple[np.ndarray, np.ndarray]:
    """Where outputs stand on the axis, and which of them have mass that can be seen."""
    places = np.array(pair.outputs if pair.is_numeric else range(len(pair.outputs)), dtype=float)
    seen = np.maximum(pair.p, pair.q) >= 1e-3 * max(pair.p.max(), pair.q.max())
    return places, seen


def _draw_laws(panel: Axes, pair: LawPair) -> None:
    places, seen = _find_places(pair)
    labels = [f"on {name}" for name in pair.given]
    if seen.sum() <= _FEW:
        panel.bar(places[seen] - 0.2, pair.p[seen], width=0.4, color=_ON, label=labels[0])
        panel.bar(places[seen] + 0.2, pair.q[seen], width=0.4, color=_BESIDE, label=labels[1])
    else:
        panel.plot(places[seen], pair.p[seen], color=_ON, label=labels[0])
        panel.plot(places[seen], pair.q[seen], color=_BESIDE, label=labels[1], linestyle="--")
    panel.set_ylim(top=1.3 * float(max(pair.p.max(), pair.q.max())))  # room for the legend
    panel.set_title("how likely each output is")
    panel.legend(frameon=False, fontsize=8, loc="upper right")
    _name_outputs(panel, pair, places)


def _draw_losses(panel: Axes, pair: LawPair) -> None:
    places, seen = _find_places(pair)
    panel.axhline(0, color=_QUIET, linewidth=0.8)
    if seen.sum() <= _FEW:
        panel.bar(places[seen], pair.losses[seen], width=0.6, color=_ON)
    else:
        panel.plot(places[seen], pair.losses[seen], color=_ON)
    panel.set_title("privacy loss ln(P/Q) at it")
    _name_outputs(panel, pair, places)


def _draw_loss_law(panel: Axes, pair: LawPair) -> None:
    losses, chances = (np.array(values) for values in zip(*pair.loss_law))
    kept = np.isfinite(losses) & (chances > 1e-6)
    losses, chances = losses[kept], chances[kept]
    if len(losses) <= _FEW:
        panel.vlines(losses, 0, chances, color=_ON, linewidth=2)
        panel.plot(losses, chances, "o", color=_ON, markersize=4)
    else:
        panel.hist(losses, bins=40, weights=chances, color=_ON)
    panel.set_ylim(bottom=0)
    panel.set_title("how often a loss occurs")
    panel.set_xlabel("loss")


def _draw_trade_off(panel: Axes, pair: LawPair) -> None:
    wrong, missed = (np.array(values) for values in zip(*pair.trade_off))
    panel.plot([0, 1], [1, 0], color=_QUIET, linestyle=":", label="nothing learned")
    panel.plot(wrong, missed, color=_ON, label="the best attack")
    panel.fill_between(wrong, 0, missed, color=_ON, alpha=0.08)
    panel.set_xlim(0, 1)
    panel.set_ylim(0, 1)
    panel.set_aspect("equal")
    panel.set_title("wrong alarms and misses")
    panel.set_xlabel("wrong alarms")
    panel.set_ylabel("missed")
    panel.legend(frameon=False, fontsize=8)


def _name_outputs(panel: Axes, pair: LawPair, places: np.ndarray) -> None:
    panel.set_xlabel("output")
    if pair.is_numeric:
        panel.locator_params(axis="x", integer=True)
    else:
        panel.set_xticks(places, [str(output) for output in pair.outputs])
