"""Methods: how the tables of a design are measured at a price, and why. The choice follows from public facts alone.

- *one shot*: residuals of all tables at once. A table that would be mostly noise is dropped: while some table's
  predicted error from noise alone, 0.4·cells·deviation/rows, is above 0.3, the worst third of those goes. A strong
  dependence in a dropped table is lost; the page and the manifest name these tables.
- *two stages* (``stages``): a fifth of μ² for one-way tables, a twentieth for scores that say how far each table is
  from independence, and the rest for the tables that are worth it.
- *independent*: one-way tables only.
- *direct* (``direct_tables``): every table by itself, with the same rule for what is dropped. Under a budget of pure ε
  it is the only way, with Laplace noise; with normal noise it is a baseline.

``auto`` takes one shot, but two stages where one shot would drop a twentieth of the tables or more and scores can tell
which to keep; and independent columns where nothing else can be told from noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from fractions import Fraction
from functools import partial
from typing import Any, assert_never

from discreet.accounting import events
from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.publish.allocation import Allocation, allocate
from discreet.publish.design import ReleaseDesign
from discreet.publish.direct_tables import allocate_directly
from discreet.publish.measurements import find_cells
from discreet.publish.noise_prediction import predict_noise
from discreet.publish.release_plan import MethodWord
from discreet.publish.row_fitting import choose_rounds
from discreet.publish.stages import FIRST_SHARE, SCORE_SHARE, Stages, is_worthwhile, plan_stages
from discreet.publish.workload import Attributes, Workload

MOST_NOISE = 0.3
# Where nobody says how many rows there are, a table is dropped only if it would be noise at this many.
UNKNOWN_ROWS = 10_000_000


class MethodName(StrEnum):
    """How tables are measured, as a manifest says it."""

    ONE_WAY = "one-way"
    INDEPENDENT = "independent"
    ONE_SHOT = "one shot"
    TWO_STAGES = "two stages"
    DIRECT = "direct"


@dataclass(frozen=True)
class Method:
    """A priced design: what is measured, what is dropped, and the reason in words.

    With ``stages``, the allocation and what is dropped are what would be without scores: what is measured in the end
    is known when the scores are.
    """

    name: MethodName
    reason: str
    allocation: Allocation
    dropped: tuple[Attributes, ...]
    rows: int | None
    stages: Stages | None = None

    @property
    def workload(self) -> Workload:
        """What is measured, as far as that is known."""
        return self.allocation.workload

    @property
    def counted(self) -> Workload:
        """What is counted."""
        return self.workload if self.stages is None else self.stages.workload

    @property
    def events(self) -> tuple[events.Event, ...]:
        """What is charged."""
        return (self.allocation.noise.event,) if self.stages is None else self.stages.events

    def predict_error(self, attributes: Attributes) -> float | None:
        """The part of a table's rows that noise alone would misplace, before shrinking; None without a size."""
        if self.rows is None or not self.allocation.covers(attributes):
            return None
        return predict_noise(self.allocation, attributes, self.rows)

    @property
    def numbers(self) -> int:
        """How many noisy numbers are drawn; in two stages at most about so many."""
        before = 0 if self.stages is None else find_cells(self.stages.first) + len(self.stages.scored)
        return find_cells(self.allocation) + before

    @property
    def seconds(self) -> int:
        """Roughly the CPU time: counting tables, drawing noise, and fitting rows to tables in rounds."""
        rows, tables = self.rows or 0, sum(len(part) > 1 for part in self.counted.weights)
        rounds = choose_rounds(self.allocation, max(1, rows))
        return math.ceil(5e-8 * rows * tables + 2.5e-8 * rows * tables * rounds + 5e-6 * self.numbers + 1)

    @property
    def memory_megabytes(self) -> int:
        """Roughly what the work takes: exact, noisy and estimated numbers, and rows.

        A value of a row is there as a code, in the fitted rows and decoded: some 72 bytes, by what releases of 10 and
        of 42 columns took (155 and 717 MB).
        """
        rows = (self.rows or 0) * len(self.workload.sizes) * 72
        return math.ceil((60 * self.numbers + rows) / 1e6) + 100


def find_terms(design: ReleaseDesign) -> dict[str, Any]:
    """Who is protected, as ``allocate`` wants to know it."""
    names = ("steps", "max_rows", "neighbours", "unit")
    return {name: getattr(design, name) for name in names}


def choose_method(design: ReleaseDesign, mu_squared: Fraction, rows: int | None) -> Method:
    """What is measured at this price in μ², where there are about so many rows."""
    terms = find_terms(design)
    asked, several = design.plan.method, [part for part in design.workload.weights if len(part) > 1]
    if asked is MethodWord.INDEPENDENT:
        alone = allocate(design.workload.without(several), mu_squared, **terms)
        return Method(MethodName.INDEPENDENT, "the plan asks for it", alone, tuple(several), rows)
    if asked is MethodWord.DIRECT:
        return _choose_directly(design, mu_squared, rows, "the plan asks for it", pure=False)
    size = UNKNOWN_ROWS if rows is None else rows
    allocation, dropped = drop_noise(design.workload, mu_squared, size, **terms)
    one_shot = Method(
        *_describe(len(design.columns), len(several) - len(dropped), len(dropped), rows), allocation, dropped, rows
    )
    match asked:
        case MethodWord.ONE_SHOT:
            return one_shot
        case MethodWord.TWO_STAGES:
            return _stage(design, mu_squared, rows, "the plan asks for it", terms)
        case MethodWord.AUTO:
            # A row of a unit with many rows weighs as much as all of them may.
            worth = mu_squared / design.max_rows**2
            if rows is None or not is_worthwhile(worth, len(several), len(dropped), rows):
                return one_shot
            reason = (
                f"one shot would drop {len(dropped)} of {len(several)} tables at about {rows:,} rows; scores choose"
            )
            return _stage(design, mu_squared, rows, reason, terms)
        case _:
            assert_never(asked)


def choose_pure(design: ReleaseDesign, epsilon: Fraction, rows: int | None) -> Method:
    """What is measured at this price in pure ε: every table by itself, with Laplace noise."""
    asked = design.plan.method
    if asked not in (MethodWord.AUTO, MethodWord.DIRECT, MethodWord.INDEPENDENT):
        raise UsageError(
            f"A budget of pure ε pays for direct tables with Laplace noise, not for {str(asked)!r}. Leave method out, "
            "or declare a budget with ε and δ, ρ or μ. Nothing was charged."
        )
    return _choose_directly(design, epsilon, rows, "a budget of pure ε pays for Laplace noise only", pure=True)


def _choose_directly(design: ReleaseDesign, amount: Fraction, rows: int | None, reason: str, *, pure: bool) -> Method:
    workload, size = design.workload, UNKNOWN_ROWS if rows is None else rows
    gone: tuple[Attributes, ...] = ()
    if design.plan.method is MethodWord.INDEPENDENT:
        gone = tuple(part for part in workload.weights if len(part) > 1)
        workload = workload.without(gone)
    allocation, dropped = drop_noise(
        workload, amount, size, partial(allocate_directly, pure=pure), **find_terms(design)
    )
    if dropped:
        reason += f"; {len(dropped)} tables would be mostly noise and are dropped"
    return Method(MethodName.DIRECT, reason, allocation, tuple(sorted((*dropped, *gone))), rows)


def _stage(design: ReleaseDesign, mu_squared: Fraction, rows: int | None, reason: str, terms: dict[str, Any]) -> Method:
    if not any(len(part) > 1 for part in design.workload.weights):
        raise UsageError("Two stages choose among tables of several columns, and none is wanted. Nothing was charged.")
    stages = plan_stages(design.workload, mu_squared, **terms)
    size = UNKNOWN_ROWS if rows is None else rows
    allocation, dropped = drop_noise(design.workload, stages.rest, size, **terms)
    shares = f"{float(FIRST_SHARE):.0%} of μ² for one-way tables, {float(SCORE_SHARE):.0%} for scores"
    return Method(MethodName.TWO_STAGES, f"{reason} ({shares})", allocation, dropped, rows, stages)


def drop_noise(
    workload: Workload, amount: Fraction, rows: int, make: Callable[..., Allocation] = allocate, **terms: Any
) -> tuple[Allocation, tuple[Attributes, ...]]:
    """The allocation after tables that would be mostly noise are dropped, and these tables."""
    dropped: list[Attributes] = []
    while True:
        allocation = make(workload, amount, **terms)
        several = [part for part in workload.weights if len(part) > 1]
        noise = {part: predict_noise(allocation, part, rows) for part in several}
        worst = sorted((part for part in several if noise[part] > MOST_NOISE), key=lambda part: -noise[part])
        if not worst:
            return allocation, tuple(sorted(dropped))
        gone = worst[: math.ceil(len(worst) / 3)]
        dropped += gone
        workload = workload.without(gone)


def _describe(columns: int, measured: int, dropped: int, rows: int | None) -> tuple[MethodName, str]:
    size = "an unknown number of rows" if rows is None else f"about {rows:,} rows"
    if not columns:
        return MethodName.ONE_WAY, "there are no columns, so that only the number of rows is measured"
    if not measured and not dropped:
        return MethodName.ONE_WAY, "only tables of single columns are asked for"
    if not measured:
        reason = f"at this price and {size} every table of several columns would be mostly noise"
        return MethodName.INDEPENDENT, reason
    if dropped:
        reason = f"{dropped} of {measured + dropped} tables would be mostly noise at {size} and are dropped"
        return MethodName.ONE_SHOT, reason
    return MethodName.ONE_SHOT, f"all {measured} tables of several columns can be told from noise at {size}"
