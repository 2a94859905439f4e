"""Publishing: from a plan to a bundle, under one charge.

A release is known by its name. Under one name one plan is charged once; running it again after a crash, or on unchanged
data, goes on from what was drawn and costs nothing. A changed plan, or changed data, needs another name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.accounting.account import compose
from discreet.accounting.cost_words import describe_cost
from discreet.curator import Curator
from discreet.engines.engine import ProgressCallback
from discreet.errors import RequestConflict, UsageError
from discreet.exact import Integers
from discreet.gaussian_price import find_mu_squared
from discreet.late_dataclass import dataclass
from discreet.ledger.ledger import Charge
from discreet.opening import open_codebook
from discreet.plan.catalog import suggest_nearest
from discreet.plan.relations import find_tables
from discreet.publish.bundle import MANIFEST, Bundle, write_bundle
from discreet.publish.constraints import find_allowed_row
from discreet.publish.design import ReleaseDesign, design
from discreet.publish.manifest import make_manifest
from discreet.publish.measurements import measure
from discreet.publish.method import Method, choose_method
from discreet.publish.part_tables import describe_parts, make_part_tables
from discreet.publish.plan_entries import split_price
from discreet.publish.priced_parts import PricedParts, open_plan_series, price_parts
from discreet.publish.records import dump_measurements, load_measurements
from discreet.publish.release_plan import ReleasePlan
from discreet.publish.release_preview import ReleasePreview
from discreet.publish.stages import measure_stages
from discreet.series.running_series import RunningSeries

PREFIX = "publish: "


def publish(
    plan: str | Path | Mapping[str, Any] | ReleasePlan,
    *,
    curator: Curator | None = None,
    out: str | Path | None = None,
    analyst: str = "analyst",
    project: str = "",
    watch: ProgressCallback | None = None,
) -> Bundle:
    """Publish what a plan says, as a bundle in the folder ``out``. The ledger is charged once.

    ``plan`` is a TOML file, its words as a mapping, or a ``ReleasePlan``. Without a ``curator`` the plan's codebook is
    opened. The same plan again returns the bundle that is there, or writes it anew from what was drawn, for nothing.
    """
    read = read_plan(plan)
    if out is None:
        raise UsageError("Say where the bundle goes: out='bundle/'. Nothing was charged.")
    with nullcontext(curator) if curator is not None else open_codebook(_find_codebook(read)) as opened:
        return _Publication.prepare(read, opened, analyst, project).run(Path(out), watch)


def preview(
    plan: str | Path | Mapping[str, Any] | ReleasePlan,
    *,
    curator: Curator | None = None,
    analyst: str = "analyst",
    project: str = "",
) -> ReleasePreview:
    """What a release would cost and how exact its tables would be. Free: no data is read, nothing is charged."""
    read = read_plan(plan)
    with nullcontext(curator) if curator is not None else open_codebook(_find_codebook(read)) as opened:
        return _Publication.prepare(read, opened, analyst, project).preview()


def read_plan(plan: str | Path | Mapping[str, Any] | ReleasePlan) -> ReleasePlan:
    """A plan from wherever it is."""
    if isinstance(plan, ReleasePlan):
        return plan
    if isinstance(plan, str | Path):
        return ReleasePlan.load(plan)
    return ReleasePlan.from_dict(plan)


def _find_codebook(plan: ReleasePlan) -> Path:
    if plan.codebook is None:
        raise UsageError('The plan names no codebook: write codebook = "hospital.toml", or give curator=...')
    return plan.codebook


@dataclass(frozen=True)
class _Publication:
    """A priced plan and who asks for it."""

    curator: Curator
    design: ReleaseDesign
    method: Method
    parts: PricedParts
    charge: Charge

    @classmethod
    def prepare(cls, plan: ReleasePlan, curator: Curator, analyst: str, project: str) -> _Publication:
        """Settle and price a plan. Nothing private is read."""
        settled = design(plan, curator.catalog)
        find_allowed_row(settled.columns, plan.constraints)
        version = curator.find_version(settled.question)
        identity = _identify(settled, curator, version)
        known = curator.ledger.find_paid(identity, analyst)
        paid = find_mu_squared(plan.offer, curator.terms_for(analyst)) if known is None else Fraction(known)
        own, *others = split_price(paid, plan.part_weights)
        method = choose_method(settled, own, _find_rows(settled, curator))
        parts = price_parts(plan, curator, others, analyst, project)
        charged = (*method.events, *parts.events)
        charge = Charge(
            request=PREFIX + plan.name,
            analyst=analyst,
            dataset=curator.name,
            identity=identity,
            # A request means this question: with the identity in it, no other plan or data can take its draw.
            question=f"{PREFIX}{plan.name}: {', '.join(settled.names)} FROM {plan.source} "
            f"({identity}{_name_parts(parts)})",
            events=charged,
            loss=compose(list(charged)).loss,
            project=project,
            version=version,
            paid=str(paid),
        )
        return cls(curator, settled, method, parts, charge)

    def preview(self) -> ReleasePreview:
        """What it would cost and yield."""
        same = self.curator.ledger.find_paid(self.charge.identity, self.charge.analyst) is not None
        return ReleasePreview(
            design=self.design,
            method=self.method,
            parts=self.parts,
            cost=describe_cost(self.curator.budget, self.charge.loss),
            remaining=self.curator.remaining,
            fits=same or self.curator.ledger.fits(self.charge),
            paid=same,
        )

    def run(self, folder: Path, watch: ProgressCallback | None) -> Bundle:
        """Charge, count, draw, and write everything that follows."""
        there = self._find_bundle(folder)
        if there is not None:
            return there
        workload, stages = self.method.counted, self.method.stages

        def draw(counted: tuple[Integers, ...]) -> dict[str, Any]:
            tables, fine = self.design.split_tables(counted, workload)
            if stages is not None:
                measured = measure_stages(tables, stages, fine)
            else:
                measured = measure(tables, self.method.allocation, fine)
            return dump_measurements(replace(measured, priors=self.design.priors))

        try:
            tabulation = self.design.tabulate(workload)
            reservation, record = self.curator.draw_tables(tabulation, self.charge, draw, watch)
        except RequestConflict as error:
            raise UsageError(
                f"The release {self.design.plan.name!r} was charged with another plan, or for other data. Give this "
                f"one another name, and say supersedes = {self.design.plan.name!r}. Nothing was charged."
            ) from error
        answers = self.parts.answer(self.curator, self.charge)
        self.parts.release_series()
        manifest = make_manifest(
            self.design,
            self.method,
            load_measurements(record),
            dataset=self.curator.name,
            delta=self.curator.budget.slack(),
            receipt={"ledger": reservation.ledger, "number": reservation.number, "hash": reservation.hash},
            released=[e for entry in self._list_releases() for e in entry.charge.events],
            parts=describe_parts(self.parts, answers),
        )
        bundle = write_bundle(folder, manifest, record, make_part_tables(self.parts, answers))
        if reservation.record is None:
            self.curator.ledger.commit(reservation, {"publish": self.design.plan.name, "files": manifest["files"]})
        return bundle

    def _list_releases(self) -> list[Any]:
        """All releases of the dataset that were charged, this one among them."""
        return [entry for entry in self.curator.history() if entry.charge.request.startswith(PREFIX)]

    def _find_bundle(self, folder: Path) -> Bundle | None:
        """The bundle that is there already, if it is this release; any other folder is left alone."""
        if not folder.exists():
            return None
        if (folder / MANIFEST).exists():
            there = Bundle.load(folder)
            ledger, charge = self.curator.ledger, self.charge
            known = ledger.find_request(charge.analyst, charge.request)
            same = known is not None and there.manifest["receipt"]["hash"] == known.hash
            if same and ledger.find_paid(charge.identity, charge.analyst) is not None:
                return there
        raise UsageError(f"{folder} exists and is not this release. Give another --out. Nothing was charged.")


def _name_parts(parts: PricedParts) -> str:
    """What is drawn beside tables is part of what a request means."""
    return f"; {parts.digest}" if parts.events else ""


def go_on(
    plan: str | Path | Mapping[str, Any] | ReleasePlan,
    name: str,
    *,
    curator: Curator,
    analyst: str = "analyst",
    project: str = "",
) -> RunningSeries:
    """A series of a plan that was published: ``release()`` gives its next period, which is paid for already."""
    read = read_plan(plan)
    for entry in read.series:
        if entry.name == name:
            return open_plan_series(read, entry, curator, analyst=analyst, project=project, reserved=None)
    raise UsageError(f"The plan has no series {name!r}. {suggest_nearest(name, [e.name for e in read.series])}")


def _identify(settled: ReleaseDesign, curator: Curator, version: str) -> str:
    """The name of a release: the dataset, its version, the plan, and everything that the codebook adds to it."""
    facts = [PREFIX, curator.name, version, settled.plan.digest, repr(settled.bounded), repr(settled.columns)]
    facts += [repr(settled.workload), str(settled.max_rows), repr(curator.budget)]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def _find_rows(settled: ReleaseDesign, curator: Curator) -> int | None:
    """Roughly how many rows there are, where that is public: as the plan says, or the codebook of a single table."""
    tables = find_tables(settled.question.source)
    known = curator.catalog.sizes.get(tables[0]) if len(tables) == 1 else None
    return settled.plan.rows if settled.plan.rows is not None else known
