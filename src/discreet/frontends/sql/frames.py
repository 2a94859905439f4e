"""Reads the frames of windows: ROWS BETWEEN 2 PRECEDING AND CURRENT ROW."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.frontends.sql.reader import ExpressionReader
from discreet.frontends.terms import constants
from discreet.frontends.terms.positions import Place, refusal
from discreet.plan.relations import RowFrame

if TYPE_CHECKING:
    from sqlglot.expressions import Expr as Node

MAX_ROWS = 1_000_000
_FIX = "Write for example ROWS BETWEEN 2 PRECEDING AND CURRENT ROW."


def read_frame(reader: ExpressionReader, node: Node, place: Place) -> RowFrame | None:
    """The rows of a frame; None for the frame that a window with ORDER BY has anyway."""
    if node.args.get("exclude"):
        raise refusal(place, "EXCLUDE is not available in a frame.", "Leave it out.")
    reader.check_parts(node, "kind", "start", "start_side", "end", "end_side")
    first = _read_end(reader, node, "start", place)
    last = _read_end(reader, node, "end", place) if node.args.get("end") is not None else 0
    if str(node.args.get("kind")).upper() == "RANGE" and (first, last) == (None, 0):
        return None
    if str(node.args.get("kind")).upper() != "ROWS":
        rule = "Frames are counted in ROWS, and RANGE goes from the first row of the part to this one."
        raise refusal(place, rule, _FIX)
    if first is not None and last is not None and first > last:
        raise refusal(place, "This frame ends before it begins.", _FIX)
    return RowFrame(first, last)


def _read_end(reader: ExpressionReader, node: Node, part: str, place: Place) -> int | None:
    """How many rows after this one a frame begins or ends; None where it has no end on that side."""
    end, side = node.args.get(part), str(node.args.get(f"{part}_side") or "").upper()
    if isinstance(end, str):
        word = end.upper()
        if word == "CURRENT ROW":
            return 0
        if word == "UNBOUNDED" and side == ("PRECEDING" if part == "start" else "FOLLOWING"):
            return None
        raise refusal(place, "This frame ends before it begins.", _FIX)
    value = None
    if end is not None and type(end).__name__ == "Literal" and not end.args.get("is_string"):
        value = constants.read_number(str(end.this), reader.place_of(end))
    if not isinstance(value, int) or not 0 <= value <= MAX_ROWS:
        raise refusal(place, f"A frame reaches 0 to {MAX_ROWS:,} rows before or after a row.", _FIX)
    return value if side == "FOLLOWING" else -value
