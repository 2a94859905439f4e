"""A metered check of synthetic rows: how far their tables are from the private ones, bought like any question.

*Statement.* For each of P tables A over the release's columns, s_A of ``table_distances`` compares the private counts
with those of public rows. The vector of all s_A gets rounded normal noise: μ² = P·(K·steps)²/V, or four times that.

s_A over twice the number of rows is the total variation distance, up to the difference of the totals. Tables of three
columns check what a release of pairs does not measure. Rows come from the bundle's measurements and its public seed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
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
from discreet.publish.release_plan import ReleasePlan
from discreet.publish.synthetic_rows import make_cells
from discreet.publish.table_distances import find_squared_distance, score_tables
from discreet.publish.workload import Attributes

PREFIX = "publish check: "
# The most tables of one check, and the most cells of one table.
MOST_TABLES = 200
MOST_CELLS = 200_000


@dataclass(frozen=True)
class UtilityReport:
    """How far the rows are from the private data: the mean over all checked tables, with its interval, and each."""

    k_marginal: float
    low: float
    high: float
    ways: int
    distances: Mapping[tuple[str, ...], float]
    deviation: float

    def __str__(self) -> str:
        worst = sorted(self.distances.items(), key=lambda each: -each[1])[:5]
        lines = [
            f"k-marginal score of {len(self.distances)} tables of {self.ways} columns: {self.k_marginal:.1f} of 1000 "
            f"({self.low:.1f} to {self.high:.1f})"
        ]
        lines += [f"  {' × '.join(names)}: {far:.4f} ± {self.deviation:.2g}" for names, far in worst]
        return "\n".join(lines)

    __repr__ = __str__


def check_rows(
    plan: Mapping[str, Any] | ReleasePlan,
    bundle: Bundle | str | Path,
    *,
    curator: Curator,
    ways: int = 3,
    analyst: str = "analyst",
    project: str = "",
    level: Number = 0.95,
    epsilon: Number | None = None,
    rho: Number | None = None,
    share: Number | None = None,
) -> UtilityReport:
    """Buy a report of how far a bundle's synthetic rows are from the private ones, by tables of ``ways`` columns.

    The same check again is free, and gives the same numbers.
    """
    read = plan if isinstance(plan, ReleasePlan) else ReleasePlan.from_dict(plan)
    opened = bundle if isinstance(bundle, Bundle) else Bundle.load(bundle)
    if opened.manifest["plan_digest"] != read.digest or "rows" not in opened.manifest:
        raise UsageError("This bundle has no rows, or is of another plan. Nothing was charged.")
    settled = design(read, curator.catalog)
    tables = choose_tables(settled, ways)
    offer = Offer(epsilon=epsilon, rho=rho, share=share, level=level, alone=epsilon is not None)
    noise, charge = _price(settled, tables, opened, curator, offer, analyst=analyst, project=project)
    views = tuple(column.view(i) for i, column in enumerate(settled.columns))
    tabulation = Tabulation(settled.bounded, views, tables)
    rows = _make_cells(opened)
    made = [settled.steps * _count(rows, table, settled) for table in tables]

    def draw(counted: tuple[Integers, ...]) -> dict[str, Any]:
        drawn = noise.release(score_tables(counted, made))
        return {"scores": [str(int(value)) for value in np.asarray(drawn)]}

    try:
        reservation, record = curator.draw_tables(tabulation, charge, draw)
    except RequestConflict as error:
        raise UsageError("This check was charged with another plan or other data. Nothing was charged.") from error
    if reservation.record is None:
        curator.ledger.commit(reservation, {"publish check": read.name})
    scale = 2 * settled.steps * rows.shape[1]
    deviation = math.sqrt(float(noise.event.variance)) / scale
    return _report([int(score) / scale for score in record["scores"]], tables, settled, deviation, level)


def choose_tables(settled: ReleaseDesign, ways: int) -> tuple[Attributes, ...]:
    """The tables to check: all that are small enough, or some of them, by public chance."""
    if isinstance(ways, bool) or ways not in (1, 2, 3) or ways > len(settled.columns):
        raise UsageError("ways is 1, 2 or 3, and at most the number of columns. Nothing was charged.")
    found = [t for t in combinations(range(len(settled.columns)), ways) if settled.workload.cells(t) <= MOST_CELLS]
    if not found:
        raise UsageError("All tables of so many columns are too large to check. Give fewer bins. Nothing was charged.")
    order = PublicChance(settled.plan.name.encode()).shuffle(len(found))[:MOST_TABLES]
    return tuple(found[place] for place in sorted(order))


def _price(
    settled: ReleaseDesign,
    tables: Sequence[Attributes],
    bundle: Bundle,
    curator: Curator,
    offer: Offer,
    *,
    analyst: str,
    project: str,
) -> tuple[RoundedGaussian, Charge]:
    """The noise that the offer buys, and the charge for it."""
    version = curator.find_version(settled.question)
    # The offer is not part of what is checked: a better one is another check, and must be asked for by a new release.
    facts = [PREFIX, curator.name, version, settled.plan.digest, repr(tables), bundle.manifest["rows"]["sha256"]]
    facts += [repr(settled.bounded), repr(curator.budget)]
    identity = hashlib.sha256("\n".join(facts).encode()).hexdigest()
    known = curator.ledger.find_paid(identity, analyst)
    paid = find_mu_squared(offer, curator.terms_for(analyst)) if known is None else Fraction(known)
    squared = find_squared_distance(len(tables), settled.max_rows, settled.steps, settled.neighbours)
    noise = RoundedGaussian(
        squared_sensitivity=squared,
        variance=shorten(squared / paid),
        neighbours=settled.neighbours,
        unit=settled.unit,
    )
    name = f"{settled.plan.name}: {len(tables[0])} columns"
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


def _make_cells(bundle: Bundle) -> Integers:
    """The cells of the bundle's rows, again from what was drawn."""
    constraints = [Constraint.from_dict(each) for each in bundle.manifest["plan"]["constraints"]]
    chance = PublicChance(bytes.fromhex(bundle.manifest["rows"]["seed"]))
    return make_cells(bundle.measurements, bundle.columns, constraints, chance)[0]


def _count(rows: Integers, table: Attributes, settled: ReleaseDesign) -> Integers:
    shape = settled.workload.shape(table)
    cells = np.ravel_multi_index([rows[column] for column in table], shape)
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)


def _report(
    distances: Sequence[float], tables: Sequence[Attributes], settled: ReleaseDesign, deviation: float, level: Number
) -> UtilityReport:
    width = NormalDist().inv_cdf((1 + float(parameters.read_probability(level, "level"))) / 2)
    middle, half = float(np.mean(distances)), width * deviation / math.sqrt(len(distances))
    return UtilityReport(
        k_marginal=1000 * (1 - middle),
        low=1000 * (1 - middle - half),
        high=min(1000.0, 1000 * (1 - middle + half)),
        ways=len(tables[0]),
        distances={tuple(settled.names[c] for c in table): far for table, far in zip(tables, distances)},
        deviation=deviation,
    )
