"""Publishing: from a plan to a bundle, under one charge.

A release is known by its name. Under one name one plan is charged once; running it again after a crash, or on unchanged
data, goes on from what was drawn and costs nothing. A changed plan, or changed data, needs another name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.accounting.account import compose
from discreet.accounting.cost_words import describe_cost
from discreet.curator import Curator
from discreet.engines.engine import ProgressCallback
from discreet.errors import InternalError, RequestConflict, UsageError
from discreet.exact import Integers
from discreet.gaussian_price import make_event
from discreet.late_dataclass import dataclass
from discreet.ledger.ledger import Charge, Ledger
from discreet.opening import open_codebook
from discreet.plan.catalog import suggest_nearest
from discreet.plan.relations import find_tables
from discreet.publish.bundle import MANIFEST, Bundle, check_place, is_whole, write_bundle
from discreet.publish.constraints import find_allowed_row
from discreet.publish.design import ReleaseDesign, design
from discreet.publish.manifest import add_up, make_manifest
from discreet.publish.measurements import measure
from discreet.publish.method import Method, choose_method, choose_pure
from discreet.publish.part_tables import describe_keys, describe_parts, make_part_tables
from discreet.publish.plan_entries import split_price
from discreet.publish.priced_parts import PricedParts, make_free_line, open_plan_series, price_parts
from discreet.publish.private_keys import take_keys
from discreet.publish.records import dump_measurements, load_measurements
from discreet.publish.release_plan import ReleasePlan
from discreet.publish.release_preview import ReleasePreview
from discreet.publish.release_price import ReleasePrice
from discreet.publish.stages import measure_stages
from discreet.publish.verification import holds, verify
from discreet.quote import Quote
from discreet.series.running_series import RunningSeries

PREFIX = "publish: "
# The line of tables where keys were named on the line of the charge.
TABLE_LINE = "tables"


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
    read = ReleasePlan.read(plan)
    if out is None:
        raise UsageError("Say where the bundle goes: out='bundle/'. Nothing was charged.")
    with open_plan(read, curator) as opened:
        return _Publication.prepare(read, opened, analyst, project).run(Path(out), watch)


def preview(
    plan: str | Path | Mapping[str, Any] | ReleasePlan,
    *,
    curator: Curator | None = None,
    analyst: str = "analyst",
    project: str = "",
) -> ReleasePreview:
    """What a release would cost and how exact its tables would be. Free: no data is read, nothing is charged."""
    read = ReleasePlan.read(plan)
    with open_plan(read, curator) as opened:
        return _Publication.prepare(read, opened, analyst, project).preview()


def open_plan(
    plan: str | Path | Mapping[str, Any] | ReleasePlan, curator: Curator | None = None
) -> AbstractContextManager[Curator]:
    """The curator that is given, or the one of the codebook that a plan names, which is closed in the end."""
    codebook = ReleasePlan.read(plan).codebook
    if curator is not None:
        return nullcontext(curator)
    if codebook is None:
        raise UsageError('The plan names no codebook: write codebook = "hospital.toml", or give curator=...')
    return open_codebook(codebook)


@dataclass(frozen=True)
class _Publication:
    """A priced plan and who asks for it."""

    curator: Curator
    design: ReleaseDesign
    method: Method
    parts: PricedParts
    charge: Charge
    keys: Quote | None
    own: Fraction

    @classmethod
    def prepare(cls, plan: ReleasePlan, curator: Curator, analyst: str, project: str) -> _Publication:
        """Settle and price a plan. Nothing private is read."""
        settled = design(plan, curator.catalog)
        find_allowed_row(settled.columns, plan.constraints)
        version = curator.find_version(settled.question)
        identity = _identify(settled, curator, version)
        known = curator.ledger.find_paid(identity, analyst)
        priced = ReleasePrice.find(plan, curator, analyst, known)
        own, *others = split_price(priced.rest, plan.part_weights)
        choose = choose_pure if priced.pure else choose_method
        method = choose(settled, own, _find_rows(settled, curator))
        parts = price_parts(plan, curator, others, analyst, project)
        # Where keys are named first, the noise of tables follows from them, and only its μ² is known before.
        tables = method.events if priced.keys is None else (make_event(own, settled.unit, settled.neighbours),)
        charged = (*tables, *parts.events, *(() if priced.keys is None else priced.keys.events))
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
            paid=priced.paid,
        )
        return cls(curator, settled, method, parts, charge, priced.keys, own)

    def preview(self) -> ReleasePreview:
        """What it would cost and yield."""
        ledger, charge = self.curator.ledger, self.charge
        same = ledger.find_paid(charge.identity, charge.analyst) is not None
        return ReleasePreview(
            design=self.design,
            method=self.method,
            parts=self.parts,
            lines=tuple(self.parts.describe()),
            cost=describe_cost(self.curator.budget, self.charge.loss),
            remaining=self.curator.remaining,
            fits=same or ledger.fits(charge),
            paid=same,
            taken=not same and ledger.find_request(charge.analyst, charge.request) is not None,
        )

    def run(self, folder: Path, watch: ProgressCallback | None) -> Bundle:
        """Charge, count, draw, and write everything that follows."""
        there = self._find_bundle(folder)
        if there is not None:
            self._note_written(there)
            return there
        check_place(folder)
        try:
            named, charge = self._name_keys()
            return named.write(folder, charge, watch)
        except RequestConflict as error:
            raise UsageError(
                f"The release {self.design.plan.name!r} was charged with another plan, or for other data. Give this "
                f"one another name, and say supersedes = {self.design.plan.name!r}. Nothing was charged."
            ) from error

    def _name_keys(self) -> tuple[_Publication, Charge]:
        """The release with the keys that come from the data, and the line on which its tables are drawn.

        Without such keys that is the charge itself. With them, they are drawn on its line, and tables on a free one.
        """
        if self.keys is None:
            return self, self.charge
        answers = self.curator.answer_quoted(replace(self.keys, identity=self.charge.identity), self.charge)
        kinds = {column.name: column.kind for column in self.design.columns}
        plan = self.design.plan
        settled = replace(design(take_keys(plan, answers, kinds), self.curator.catalog), plan=plan)
        method = choose_method(settled, self.own, _find_rows(settled, self.curator))
        if add_up(method.events).mu_squared > self.own:
            raise InternalError("Tables cost more than was charged for them.")
        return replace(self, design=settled, method=method), make_free_line(self.charge, TABLE_LINE, self.curator)

    def write(self, folder: Path, charge: Charge, watch: ProgressCallback | None) -> Bundle:
        """Count, draw, and write everything that follows."""
        workload, stages = self.method.counted, self.method.stages

        def draw(counted: tuple[Integers, ...]) -> dict[str, Any]:
            tables, fine = self.design.split_tables(counted, workload)
            if stages is not None:
                measured = measure_stages(tables, stages, fine)
            else:
                measured = measure(tables, self.method.allocation, fine)
            return dump_measurements(replace(measured, priors=self.design.priors))

        reservation, record = self.curator.draw_tables(
            self.design.tabulate(workload), charge, draw, _take_half(watch, 0)
        )
        answers = self.parts.answer(self.curator, self.charge)
        self.parts.release_series(self.curator, self.charge)
        receipt = self._make_receipt()
        manifest = make_manifest(
            self.design,
            self.method,
            load_measurements(record),
            dataset=self.curator.name,
            delta=self.curator.budget.slack(),
            receipt=receipt,
            released=[e for entry in self._list_releases(receipt["number"]) for e in entry.charge.events],
            parts=[*describe_parts(self.parts, answers), *describe_keys(self.design.plan, self.keys)],
        )
        bundle = write_bundle(folder, manifest, record, make_part_tables(self.parts, answers), _take_half(watch, 1))
        if reservation.record is None:
            self.curator.ledger.commit(reservation, {"publish": self.design.plan.name, "files": manifest["files"]})
        return bundle

    def _note_written(self, there: Bundle) -> None:
        """Tell the ledger of a bundle that was written before a crash, and not noted there."""
        if find_written(self.curator.ledger, self.charge.analyst, self.charge.request) is not None:
            return

        def refuse(_: tuple[Integers, ...]) -> dict[str, Any]:
            raise InternalError("A bundle was written without its draw.")

        named, charge = self._name_keys()
        counted = named.design.tabulate(named.method.counted)
        reservation, _ = self.curator.draw_tables(counted, charge, refuse)
        if reservation.record is None:
            files = {"publish": self.design.plan.name, "files": there.manifest["files"]}
            self.curator.ledger.commit(reservation, files)

    def _make_receipt(self) -> dict[str, Any]:
        """The line of the ledger that pays for all of it."""
        held = self.curator.ledger.find_request(self.charge.analyst, self.charge.request)
        if held is None:
            raise InternalError("A release was drawn without its charge.")
        return {"ledger": held.ledger, "number": held.number, "hash": held.hash}

    def _list_releases(self, last: int) -> list[Any]:
        """All releases of the dataset that were charged, up to this one: so its manifest is the same for ever."""
        entries = self.curator.history()
        return [each for each in entries if each.number <= last and each.charge.request.startswith(PREFIX)]

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
                _refuse_changed(there, find_written(ledger, charge.analyst, charge.request))
                return there
        raise UsageError(f"{folder} exists and is not this release. Give another --out. Nothing was charged.")


def find_written(ledger: Ledger, analyst: str, request: str) -> dict[str, str] | None:
    """The files of a release with their hashes, as the ledger has them; None where none was written.

    They are on the line of its charge, or, where keys were named first, on that of its tables.
    """
    for line in (request, f"{request}: {TABLE_LINE}"):
        found = ledger.find_request(analyst, line)
        if found is not None and found.record is not None and "files" in found.record:
            return dict(found.record["files"])
    return None


def _refuse_changed(there: Bundle, written: Mapping[str, str] | None) -> None:
    """A bundle that somebody has changed is not handed out as the one that was published.

    Its files are those on record; written again by other versions, they follow from the same measurements.
    """
    known = there.manifest.get("files") == written and is_whole(there)
    if not known and not holds(verify(there.folder)):
        raise UsageError(
            f"{there.folder} was changed since it was published. Give another --out: the release is written there "
            "again, for nothing. Nothing was charged."
        )


def _take_half(watch: ProgressCallback | None, half: int) -> ProgressCallback | None:
    """Who watches hears of counting in the first half, and of rows in the second."""
    return None if watch is None else lambda share: watch((half + share) / 2)


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
    read = ReleasePlan.read(plan)
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
