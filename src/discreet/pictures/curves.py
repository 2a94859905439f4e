"""Curves over one axis: error against the number of people, odds against ε, and alike.

Needs the extra ``plots`` (matplotlib), which is loaded when the first figure is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from discreet.errors import ParameterError
from discreet.pictures.figure import STYLE, check_installed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = ("#2563a6", "#c8651b", "#2f8f5b", "#7a4fa3", "#8a8f98")
_MARKS = ("o", "s", "^", "D", "v")


def draw_curves(
    x: Sequence[float],
    curves: Mapping[str, Sequence[float]],
    *,
    title: str,
    names: tuple[str, str],
    log: str = "",
) -> Figure:
    """One panel with a line for each curve; ``names`` are those of the axes, ``log`` says which are logarithmic."""
    if not curves or any(len(values) != len(x) for values in curves.values()):
        raise ParameterError("curves", "must have one value for each x", "Give lists of one length.")
    if not set(log) <= {"x", "y"}:
        raise ParameterError("log", "must name axes", 'Give "", "x", "y" or "xy".')
    check_installed()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(6.4, 3.8), layout="constrained")
        panel = figure.subplots()
        for index, (label, values) in enumerate(curves.items()):
            colour, mark = _COLOURS[index % len(_COLOURS)], _MARKS[index % len(_MARKS)]
            panel.plot(x, values, label=label, color=colour, marker=mark, markersize=4)
        panel.set_title(title, fontweight="bold")
        panel.set_xlabel(names[0])
        panel.set_ylabel(names[1])
        if "x" in log:
            panel.set_xscale("log")
        if "y" in log:
            panel.set_yscale("log")
        panel.legend(frameon=False)
    return figure
