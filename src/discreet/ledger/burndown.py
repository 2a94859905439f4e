"""The budget that was left over time: as points, as a line of text, and as an SVG picture."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from itertools import pairwise

from discreet.accounting.cost_words import largest_mu
from discreet.accounting.spending_classes import ClassCurrency, find_share_left
from discreet.exact import float_down, float_up
from discreet.late_dataclass import dataclass
from discreet.ledger.base_ledger import BaseLedger
from discreet.ledger.state import State

# The most points of a curve; more would not be visible.
_POINTS = 240
_STEPS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Point:
    """What was left of the whole budget from this time on; of (ε, δ) also the μ left for Gaussian noise.

    ``share`` is the part of the budget that shares could still be asked for: prices are told in it.
    """

    time: datetime
    left: float
    whole: float
    gaussian: float | None = None
    share: float | None = None


def read_curve(ledger: BaseLedger) -> list[Point]:
    """The curve of what was left, from the first entry to the last; a long one is thinned out evenly."""
    lines = ledger.read_lines()
    changes = [i for i, line in enumerate(lines) if not any(f'"kind":"{kind}"' in line[:120] for kind in _FREE)]
    kept = set(changes[:: max(1, len(changes) // _POINTS)]) | {changes[-1]}
    state, found = State(), []
    for number, line in enumerate(lines):
        state.absorb(number, line)
        if number in kept:
            moment = datetime.strptime(state.time, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
            left, whole = float_down(state.remaining), float_up(state.rules.budget.amount())
            share = find_share_left(state.rules.budget, state.rules.currency, state.total, state.remaining)
            found.append(Point(moment, left, whole, _find_gaussian(state), float_down(share)))
    return found


def _find_gaussian(state: State) -> float | None:
    currency = state.rules.currency
    return float_down(largest_mu(currency, state.total)) if isinstance(currency, ClassCurrency) else None


# Kinds of entries that cost nothing.
_FREE = ("answered", "resumed")


def as_text(curve: Sequence[Point], width: int = 60) -> str:
    """One line of bars over time, as high as what was left at the end of each slice.

    >>> day = [datetime(2030, 1, d, tzinfo=UTC) for d in (1, 2, 3)]
    >>> print(as_text([Point(day[0], 1.0, 1.0), Point(day[1], 0.5, 1.0), Point(day[2], 0.1, 1.0)], width=9))
    ████▄▄▄▄▁
    2030-01-01 … 2030-01-03
    """
    first, last = curve[0].time, curve[-1].time
    most = max(point.whole for point in curve)
    slices = []
    for i in range(width):
        until = first + (last - first) * ((i + 1) / width)
        point = [p for p in curve if p.time < until or p is curve[0]][-1] if i + 1 < width else curve[-1]
        eighths = round(8 * point.left / most)
        slices.append(_STEPS[max(eighths, 1 if point.left > 0 else 0)])
    return f"{''.join(slices)}\n{first:%Y-%m-%d} … {last:%Y-%m-%d}"


def as_svg(ledger: BaseLedger, width: int = 640, height: int = 240) -> str:
    """The curve as a picture: stairs going down, the whole as a dashed line, first and last day below."""
    curve = read_curve(ledger)
    most = max(point.whole for point in curve)
    first, last = curve[0].time, curve[-1].time
    span = max((last - first).total_seconds(), 1e-6)
    left, right, top, bottom = 48, width - 12, 28, height - 28

    def across(point: Point) -> float:
        return left + (right - left) * (point.time - first).total_seconds() / span

    def down(amount: float) -> float:
        return bottom - (bottom - top) * amount / most

    stairs = [f"M{across(curve[0]):.1f},{down(curve[0].left):.1f}"]
    stairs += [f"H{across(after):.1f}V{down(after.left):.1f}" for _, after in pairwise(curve)]
    stairs.append(f"H{right:.1f}")
    symbol = ledger.budget.symbol
    title = f"{symbol} left of {escape(ledger.dataset or 'the dataset')}: {curve[-1].left:.4g} of {curve[-1].whole:.4g}"
    if curve[-1].gaussian is not None:
        title += f", or μ {curve[-1].gaussian:.4g} of Gaussian noise"
    line = "".join(stairs)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{title}" '
            'font-family="sans-serif" font-size="12" fill="currentColor">',
            f'<text x="{left}" y="16" font-weight="bold">{title}</text>',
            f'<path d="{line}V{bottom}H{left}Z" fill="#2a78d6" fill-opacity="0.15"/>',
            f'<path d="{line}" fill="none" stroke="#2a78d6" stroke-width="2"/>',
            f'<path d="M{left},{down(curve[-1].whole):.1f}H{right}" stroke="currentColor" stroke-dasharray="4 4" '
            'stroke-opacity="0.5"/>',
            f'<path d="M{left},{top}V{bottom}H{right}" fill="none" stroke="currentColor" stroke-opacity="0.5"/>',
            f'<text x="{left - 6}" y="{down(most) + 4:.1f}" text-anchor="end">{most:.4g}</text>',
            f'<text x="{left - 6}" y="{bottom + 4}" text-anchor="end">0</text>',
            f'<text x="{left}" y="{height - 8}">{first:%Y-%m-%d}</text>',
            f'<text x="{right}" y="{height - 8}" text-anchor="end">{last:%Y-%m-%d}</text>',
            "</svg>",
            "",
        ]
    )
