"""A computation over released answers and public rows, as a value.

Unit, neighbours: those of the questions inside. Sensitivity: none of its own. Loss: that of the questions inside, which
are charged together. Reason: the computation is a fixed function of what the questions released, of public tables and
of constants. It runs in a database that holds nothing else (``engines.duckdb.released_rows``), so it is
post-processing, which costs nothing whatever it computes.
"""

from __future__ import annotations

from discreet.frontends.google.privacy_clause import QuestionAndOffer
from discreet.frontends.outer.row_counts import RowRule
from discreet.late_dataclass import dataclass
from discreet.plan.relations import Values


def name_released(index: int) -> str:
    """The table that holds the rows of a released question."""
    return f"released{index}"


def name_public(index: int) -> str:
    """The table that holds the rows of a declared public table."""
    return f"public{index}"


def name_brought(index: int) -> str:
    """The table that holds public rows which the analyst brings."""
    return f"brought{index}"


@dataclass(frozen=True, slots=True)
class OuterColumn:
    """A column of a query. ``origins`` are the outputs that it shows as they are: questions and positions in them.

    Where there are some, the ends of its interval follow after all columns.
    """

    name: str
    origins: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedComputation:
    """What a statement computes: ``sql`` over the tables of released questions, public tables and brought rows.

    ``columns`` are None where the names of the answer follow from the statement alone. ``rules`` bound how many rows
    are looked at, given how many the tables have.
    """

    text: str
    sql: str
    questions: tuple[QuestionAndOffer, ...]
    tables: tuple[str, ...] = ()
    brought: tuple[Values, ...] = ()
    columns: tuple[OuterColumn, ...] | None = None
    rules: tuple[tuple[str, RowRule], ...] = ()
