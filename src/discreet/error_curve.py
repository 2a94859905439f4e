"""Error against cost: what some shares of the budget would buy, as values and as a table for a narrow terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from discreet.late_dataclass import dataclass

# The shares that are shown, as far as they are left; then all that is left.
SHARES = tuple(Fraction(1, part) for part in (200, 100, 50, 20, 10, 5, 2, 1))
WIDTH = 60
_BAR = 16


@dataclass(frozen=True, slots=True)
class ColumnError:
    """The error of one column at a point: in words, as a number, and what the number counts."""

    name: str
    words: str
    size: float | None


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What one share of the budget buys: its cost in words, the kind of noise, and the error of each column."""

    share: Fraction
    cost: str
    noise: str
    errors: tuple[ColumnError, ...]

    def to_dict(self) -> dict[str, Any]:
        """The point as plain JSON values."""
        errors = {error.name: error.size for error in self.errors}
        return {"share": float(self.share), "cost": self.cost, "noise": self.noise, "errors": errors}


def format_error(error: float) -> str:
    """An error as people write it: three figures where it is no whole number, separators, and no powers of ten.

    >>> [format_error(error) for error in (20000.0, 3987.2, 332.0, 123456.0, 2.1987, 0.00012345)]
    ['20,000', '3,990', '332', '123,456', '2.2', '0.000123']
    """
    rounded = error if error.is_integer() else float(f"{error:.3g}")
    return f"{rounded:,.0f}" if rounded.is_integer() else f"{rounded:,.12f}".rstrip("0")


def list_shares(left: Fraction) -> tuple[Fraction, ...]:
    """The shares of a curve where this much is left.

    >>> [str(share) for share in list_shares(Fraction(1, 15))]
    ['1/200', '1/100', '1/50', '1/20', '1/15']
    """
    return (*(share for share in SHARES if share < left), *([left] if left > 0 else []))


def draw_curve(points: Sequence[CurvePoint], width: int = WIDTH) -> str:
    """The curve as a table; bars of the first column's error where there is room.

    >>> def point(share, size):
    ...     return CurvePoint(share, "", "Laplace", (ColumnError("n", f"± {size}", float(size)),))
    >>> print(draw_curve([point(Fraction(1, 10), 40), point(Fraction(1, 5), 20)]))
    share  noise    n
    1/10   Laplace  ± 40  ████████████████
    1/5    Laplace  ± 20  ████████
    """
    if not points:
        return "nothing is left to buy an error with"
    heads = [_format_share(point.share) for point in points], [point.noise for point in points]
    fixed = [_pad(["share", *heads[0]]), _pad(["noise", *heads[1]])]
    columns = [_pad([e.name, *(p.errors[place].words for p in points)]) for place, e in enumerate(points[0].errors)]
    blocks = list(_divide(columns, width - sum(len(column[0]) + 2 for column in fixed)))
    if len(blocks) == 1 and points[0].errors:
        blocks[0].append(["", *_draw_bars([point.errors[0].size for point in points])])
        if sum(len(column[1]) + 2 for column in (*fixed, *blocks[0][:-1])) + _BAR > width:
            blocks[0].pop()
    drawn = ["\n".join("  ".join(row).rstrip() for row in zip(*fixed, *block)) for block in blocks]
    return "\n\n".join(drawn)


def _format_share(share: Fraction) -> str:
    return str(share) if share.denominator <= 1000 else f"{100 * float(share):.3g} %"


def _pad(texts: Sequence[str]) -> list[str]:
    """Texts of one width."""
    width = max(map(len, texts))
    return [text.ljust(width) for text in texts]


def _divide(columns: Sequence[list[str]], room: int) -> Iterator[list[list[str]]]:
    """Columns in blocks that fit; one that does not fit by itself is a block by itself."""
    block: list[list[str]] = []
    used = 0
    for column in columns:
        if block and used + len(column[0]) + 2 > room:
            yield block
            block, used = [], 0
        block.append(column)
        used += len(column[0]) + 2
    yield block


def _draw_bars(sizes: Sequence[float | None]) -> list[str]:
    top = max((size for size in sizes if size is not None), default=0.0)
    return ["" if not size else "█" * max(1, round(_BAR * size / top)) for size in sizes]
