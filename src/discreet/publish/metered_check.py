"""A metered check of synthetic rows: how far their tables are from the private ones, bought like any question.

*Statement.* For each of P tables A over the release's columns, s_A or t_A of ``table_distances`` compares the private
counts with those of public rows. The vector of all scores gets rounded normal noise: μ² = P·(K·steps)²/V for s_A, or
four times that under replace, and 48² as much for t_A.

s_A over twice the number of rows is the total variation distance, up to the difference of the totals. Tables of three
columns check what a release of pairs does not measure. Rows come from the bundle's measurements and its public seed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from discreet import parameters
from discreet.accounting.account import compose
from discreet.curator import Curator
from discreet.engines.tabulation import Tabulation
from discreet.errors import RequestConflict, UsageError
from discreet.exact import Integers
from discreet.gaussian_price import find_mu_squared
from discreet.late_dataclass import dataclass
from discreet.ledger.ledger import Charge
from discreet.mechanisms.l2_noise import shorten
from discreet.mechanisms.rounded_gaussian import RoundedGaussian
from discreet.offer import Offer
from discreet.parameters import Number
from discreet.publish.bundle import Bundle
from discreet.publish.chance import PublicChance
from discreet.publish.constraints import Constraint
from discreet.publish.design import ReleaseDesign, design
from discreet.publish.page_figures import draw_bars
from discreet.publish.private_keys import list_private
from discreet.publish.release_plan import ReleasePlan
from discreet.publish.synthetic_rows import make_cells
from discreet.publish.table_distances import (
    PROPENSITY_SCALE,
    PROPENSITY_SLOPE,
    find_squared_distance,
    score_propensity,
    score_tables,
)
from discreet.publish.workload import Attributes

PREFIX = "publish check: "
# The most tables of one check, and the most cells of one table.
MOST_TABLES = 200
MOST_CELLS = 200_000


class UtilityScore(StrEnum):
    """What a check measures: how far tables are apart, or how well rows could be told from private ones."""

    DISTANCE = "distance"
    PROPENSITY = "propensity"

    @property
    def slope(self) -> int:
        """How far a score moves for each step of a count."""
        return 1 if self is UtilityScore.DISTANCE else PROPENSITY_SLOPE

    def score(self, counted: Sequence[Integers], made: Sequence[Integers]) -> Integers:
        """The scores of tables, exactly."""
        scored = score_tables if self is UtilityScore.DISTANCE else score_propensity
        return scored(counted, made)

    def scale(self, steps: int, rows: int) -> int:
        """What scores are divided by."""
        return 2 * steps * rows if self is UtilityScore.DISTANCE else 4 * PROPENSITY_SCALE * 2 * steps * rows


@dataclass(frozen=True)
class UtilityReport:
    """How far the rows are from the private data: the mean over all checked tables, with its interval, and each.

    ``distances`` are total variation distances, and ``mean`` is theirs; ``k_marginal`` is 1000·(1 − mean). With
    ``score`` "propensity" they are pMSE: 0 where nobody could tell the rows from private ones, 0.25 where all could.
    """

    score: UtilityScore
    mean: float
    half: float
    ways: int
    distances: Mapping[tuple[str, ...], float]
    deviation: float

    @property
    def k_marginal(self) -> float:
        """1000·(1 − the mean distance)."""
        return 1000 * (1 - self.mean)

    @property
    def low(self) -> float:
        """The lower end of the k-marginal score's interval."""
        return 1000 * (1 - self.mean - self.half)

    @property
    def high(self) -> float:
        """The upper end of the k-marginal score's interval."""
        return min(1000.0, 1000 * (1 - self.mean + self.half))

    def __str__(self) -> str:
        worst = sorted(self.distances.items(), key=lambda each: -each[1])[:5]
        what = f"{len(self.distances)} tables of {self.ways} columns"
        if self.score is UtilityScore.DISTANCE:
            lines = [f"k-marginal score of {what}: {self.k_marginal:.1f} of 1000 ({self.low:.1f} to {self.high:.1f})"]
        else:
            lines = [f"pMSE of {what}: {max(0.0, self.mean):.5f} ± {self.half:.2g} (0 is best, 0.25 worst)"]
        lines += [f"  {' × '.join(names)}: {far:.4f} ± {self.deviation:.2g}" for names, far in worst]
        return "\n".join(lines)

    def to_rows(self) -> list[dict[str, Any]]:
        """A row for each table: its distance (or pMSE) and the standard deviation of that."""
        return [
            {"table": " × ".join(names), "distance": far, "deviation": self.deviation}
            for names, far in self.distances.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        whole = {"score": str(self.score), "ways": self.ways, "mean": self.mean, "half": self.half}
        if self.score is UtilityScore.DISTANCE:
            whole |= {"k_marginal": self.k_marginal, "low": self.low, "high": self.high}
        return whole | {"tables": self.to_rows()}

    def _repr_html_(self) -> str:
        return self.draw()

    def draw(self) -> str:
        """A bar for each table, the worst first, as HTML."""
        order = sorted(self.distances.items(), key=lambda each: -each[1])
        bars = [(" × ".join(names), far) for names, far in order]
        return draw_bars(str(self).split("\n", 1)[0], bars, self.deviation)

    __repr__ = __str__


def check_rows(
    plan: str | Path | Mapping[str, Any] | ReleasePlan,
    bundle: Bundle | str | Path,
    *,
    curator: Curator,
    ways: int = 3,
    score: str = "distance",
    analyst: str = "analyst",
    project: str = "",
    level: Number = 0.95,
    epsilon: Number | None = None,
    rho: Number | None = None,
    share: Number | None = None,
) -> UtilityReport:
    """Buy a report of how far a bundle's synthetic rows are from the private ones, by tables of ``ways`` columns.

    ``score`` is "distance" (k-marginal) or "propensity" (pMSE by the cells of each table). The same check again is
    free, and gives the same numbers.
    """
    if score not in tuple(UtilityScore):
        raise UsageError("score is 'distance' or 'propensity'. Nothing was charged.")
    measured = UtilityScore(score)
    settled, opened = open_checked(plan, bundle, curator)
    tables = choose_tables(settled, ways)
    offer = Offer(epsilon=epsilon, rho=rho, share=share, level=level, alone=epsilon is not None)
    priced = _CheckPrice(settled, tables, measured, opened)
    noise, charge = priced.find(curator, offer, analyst=analyst, project=project)
    views = tuple(column.view(i) for i, column in enumerate(settled.columns))
    tabulation = Tabulation(settled.bounded, views, tables)
    rows = make_bundle_cells(opened)
    made = [settled.steps * _count(rows, table, settled) for table in tables]

    def draw(counted: tuple[Integers, ...]) -> dict[str, Any]:
        drawn = noise.release(measured.score(counted, made))
        return {"scores": [str(int(value)) for value in np.asarray(drawn)]}

    try:
        reservation, record = curator.draw_tables(tabulation, charge, draw)
    except RequestConflict as error:
        raise UsageError("This check was charged with another plan or other data. Nothing was charged.") from error
    if reservation.record is None:
        curator.ledger.commit(reservation, {"publish check": settled.plan.name})
    scale = measured.scale(settled.steps, rows.shape[1])
    deviation = math.sqrt(float(noise.event.variance)) / scale
    found = [int(drawn) / scale for drawn in record["scores"]]
    width = NormalDist().inv_cdf((1 + float(parameters.read_probability(level, "level"))) / 2)
    return UtilityReport(
        score=measured,
        mean=float(np.mean(found)),
        half=width * deviation / math.sqrt(len(found)),
        ways=ways,
        distances={tuple(settled.names[c] for c in table): far for table, far in zip(tables, found)},
        deviation=deviation,
    )


def open_checked(
    plan: str | Path | Mapping[str, Any] | ReleasePlan, bundle: Bundle | str | Path, curator: Curator
) -> tuple[ReleaseDesign, Bundle]:
    """A plan against the codebook, and its bundle; refused where the bundle has no rows, or is of another plan."""
    read = ReleasePlan.read(plan)
    opened = bundle if isinstance(bundle, Bundle) else Bundle.load(bundle)
    if opened.manifest["plan_digest"] != read.digest or "rows" not in opened.manifest:
        raise UsageError("This bundle has no rows, or is of another plan. Nothing was charged.")
    settled = replace(design(_take_named(read, opened), curator.catalog), plan=read)
    if [(c.name, c.size) for c in settled.columns] != [(c.name, c.size) for c in opened.columns]:
        raise UsageError("The columns of this bundle are not those of its plan and codebook. Nothing was charged.")
    return settled, opened


def _take_named(plan: ReleasePlan, bundle: Bundle) -> ReleasePlan:
    """The plan with the keys that were named from the data when it was published: they are public now."""
    named = {name: column.values for name, column in zip(bundle.names, bundle.columns) if name in list_private(plan)}
    columns = {name: replace(c, keys=named[name]) if name in named else c for name, c in plan.columns.items()}
    return replace(plan, columns=columns)


def choose_tables(settled: ReleaseDesign, ways: int) -> tuple[Attributes, ...]:
    """The tables to check: all that are small enough, or some of them, by public chance."""
    if isinstance(ways, bool) or ways not in (1, 2, 3) or ways > len(settled.columns):
        raise UsageError("ways is 1, 2 or 3, and at most the number of columns. Nothing was charged.")
    found = [t for t in combinations(range(len(settled.columns)), ways) if settled.workload.cells(t) <= MOST_CELLS]
    if not found:
        raise UsageError("All tables of so many columns are too large to check. Give fewer bins. Nothing was charged.")
    order = PublicChance(settled.plan.name.encode()).shuffle(len(found))[:MOST_TABLES]
    return tuple(found[place] for place in sorted(order))


@dataclass(frozen=True)
class _CheckPrice:
    """What is checked, before it has a price."""

    settled: ReleaseDesign
    tables: Sequence[Attributes]
    score: UtilityScore
    bundle: Bundle

    def find(self, curator: Curator, offer: Offer, *, analyst: str, project: str) -> tuple[RoundedGaussian, Charge]:
        """The noise that the offer buys, and the charge for it."""
        settled = self.settled
        version = curator.find_version(settled.question)
        # The offer is not part of what is checked: a better one is another check, and needs a new release.
        facts = [PREFIX, curator.name, version, settled.plan.digest, repr(self.tables)]
        facts += [self.bundle.manifest["rows"]["sha256"], str(self.score), repr(settled.bounded), repr(curator.budget)]
        identity = hashlib.sha256("\n".join(facts).encode()).hexdigest()
        known = curator.ledger.find_paid(identity, analyst)
        paid = find_mu_squared(offer, curator.terms_for(analyst)) if known is None else Fraction(known)
        squared = find_squared_distance(len(self.tables), settled.max_rows, settled.steps, settled.neighbours)
        squared *= self.score.slope**2
        noise = RoundedGaussian(
            squared_sensitivity=squared,
            variance=shorten(squared / paid),
            neighbours=settled.neighbours,
            unit=settled.unit,
        )
        name = f"{settled.plan.name}: {len(self.tables[0])} columns, {self.score}"
        return noise, Charge(
            request=PREFIX + name,
            analyst=analyst,
            dataset=curator.name,
            identity=identity,
            question=f"{PREFIX}{name} ({identity})",
            events=(noise.event,),
            loss=compose([noise.event]).loss,
            project=project,
            version=version,
            paid=str(paid),
        )


def make_bundle_cells(bundle: Bundle) -> Integers:
    """The cells of the bundle's rows, again from what was drawn."""
    constraints = [Constraint.from_dict(each) for each in bundle.manifest["plan"]["constraints"]]
    chance = PublicChance(bytes.fromhex(bundle.manifest["rows"]["seed"]))
    return make_cells(bundle.measurements, bundle.columns, constraints, chance)[0]


def _count(rows: Integers, table: Attributes, settled: ReleaseDesign) -> Integers:
    shape = settled.workload.shape(table)
    cells = np.ravel_multi_index([rows[column] for column in table], shape)
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)
