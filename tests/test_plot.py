"""Charts: every value with its interval, lines along what has an order, and nothing without matplotlib."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.container import BarContainer, ErrorbarContainer

from discreet.answer_rows import Cell, Rows, make_rows
from discreet.errors import ParameterError, UsageError
from discreet.plan.types import Type, Value
from discreet.plot import MAX_BARS, plot_rows
from tests.worlds.visits import BY_WARD, curator


@pytest.fixture(autouse=True)
def _figures() -> Iterator[None]:
    """Charts without a screen, which are put away."""
    mpl.use("agg")
    yield
    pyplot.close("all")


def rows_of(kinds: list[Type], *values: tuple[Value, ...]) -> Rows:
    """Rows of keys and a count n with an interval of five to each side."""
    made = tuple((*map(Cell, row[:-1]), _count(row[-1])) for row in values)
    names = (*[f"k{i}" for i in range(len(kinds))], "n")
    return make_rows(names, (*kinds, Type.INTEGER), (*[False] * len(kinds), True), made)


def _count(value: Value) -> Cell:
    return Cell(value, value - 5, value + 5) if isinstance(value, int) else Cell(value)


def intervals(container: ErrorbarContainer, axis: int) -> list[tuple[float, float]]:
    """The ends of error bars, as they are drawn."""
    (bars,) = container.lines[2]
    found = [np.asarray(path.vertices)[:, axis] for path in bars.get_paths()]
    return [(float(ends.min()), float(ends.max())) for ends in found]


def test_texts_make_bars_with_intervals() -> None:
    """To the right, in the order of the rows, each from low to high; NULL by name."""
    axes = plot_rows(rows_of([Type.TEXT], ("b", 10), ("a", 20), (None, 7)), "95%")
    bars = [patch.get_width() for patch in axes.patches]  # type: ignore[attr-defined]  # rectangles
    assert bars == [10, 20, 7] and [label.get_text() for label in axes.get_yticklabels()] == ["b", "a", "NULL"]
    (container,) = (c for c in axes.containers if isinstance(c, BarContainer))
    assert container.errorbar is not None
    assert intervals(container.errorbar, 0) == [(5, 15), (15, 25), (2, 12)]
    assert axes.get_xlabel() == "n with noise 95%" and axes.get_ylabel() == "k0" and axes.yaxis_inverted()


def test_times_make_lines_in_their_order() -> None:
    """Values that are not known have no point, ends that are not known no bar, and NULL is told below."""
    days = [dt.datetime(2024, month, 1) for month in (3, 1, 2)]  # noqa: DTZ001  # data without a zone
    rows = rows_of([Type.TIMESTAMP], (days[0], 10), (days[1], 20), (days[2], None), (None, 7))
    axes = plot_rows(rows, "95%")
    (container,) = (c for c in axes.containers if isinstance(c, ErrorbarContainer))
    line = container.lines[0]
    assert line is not None and np.asarray(line.get_ydata()).tolist() == [20, 10]
    assert intervals(container, 1) == [(15, 25), (5, 15)]
    assert axes.get_xlabel() == "k0 (without NULL: 7 [2, 12])" and axes.get_ylabel() == "n with noise 95%"


@pytest.mark.parametrize("first", [Type.TEXT, Type.INTEGER])
def test_a_second_key_makes_series(first: Type) -> None:
    """With a legend of its values; so many that nobody could tell them apart become labels."""
    places: list[Value] = ["a", "b"] if first is Type.TEXT else [2020, 2021]
    axes = plot_rows(rows_of([first, Type.TEXT], *[(p, s, 10) for p in places for s in ("f", "m")]), "95%")
    legend = axes.get_legend()
    assert legend is not None and [text.get_text() for text in legend.get_texts()] == ["f", "m"]
    if first is Type.INTEGER:
        missing = plot_rows(rows_of([first, Type.TEXT], (2020, "f", 10), (None, "f", 3), (None, "m", 4)), "95%")
        assert missing.get_xlabel() == "k0 (without NULL: 3 [-2, 8], 4 [-1, 9])"
    many = plot_rows(rows_of([first, Type.TEXT], *[(places[0], f"s{i}", 10) for i in range(9)]), "95%")
    assert many.get_legend() is None and len(many.patches) == 9


def test_the_column_is_chosen_by_name() -> None:
    """On axes of one's own, too; what has no interval is refused with what has."""
    answer = curator().ask(BY_WARD, epsilon=1)
    _, axes = pyplot.subplots()
    assert answer.plot("age", ax=axes) is axes and axes.get_xlabel() == "age with noise 95%"
    with pytest.raises(ParameterError, match="Use one of: n, age"):
        answer.plot("ward")
    with pytest.raises(UsageError, match="nothing to plot"):
        plot_rows(make_rows(("k",), (Type.TEXT,), (False,), ((Cell("a"),),)), "95%")


def test_one_number_and_three_keys_are_charts() -> None:
    """One bar; and bars whose labels join the keys."""
    assert len(plot_rows(rows_of([], (3,)), "95%").patches) == 1
    axes = plot_rows(rows_of([Type.TEXT] * 3, ("a", "b", "c", 3)), "95%")
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a, b, c"]


def test_too_many_bars_and_no_matplotlib_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to do."""
    with pytest.raises(UsageError, match="ORDER BY and LIMIT"):
        plot_rows(rows_of([Type.TEXT], *[(str(i), i) for i in range(MAX_BARS + 1)]), "95%")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"pip install 'discreet\[plots\]'"):
        plot_rows(rows_of([Type.TEXT], ("a", 1)), "95%")
