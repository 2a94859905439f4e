"""Questions over several tables: neighbours in all of them at once, right questions pass, broken ones are caught."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from discreet import price
from discreet.audit import Verdict, check_law, clinic, neighbours
from discreet.audit.dataset_neighbours import Dataset, Ownership, make_changes
from discreet.audit.questions import CuratorLine, RowsOrDataset, check_question, check_questions
from discreet.bounding.contributions import MOST_BITS, BoundedPlan, Counts, Reach, reach
from discreet.engines.engine import Capabilities, Engine, Groups, ProgressCallback
from discreet.engines.memory.engine import MemoryEngine
from discreet.engines.tabulation import Tabulation
from discreet.errors import UsageError
from discreet.exact import Integers
from discreet.mechanisms import GaussianThreshold, WeightedSelection
from discreet.mechanisms.weighted_selection import better_selection
from discreet.plan.catalog import Catalog, ContributionLimits, TableFacts
from discreet.plan.expressions import Column
from discreet.plan.relations import (
    Distinct,
    Feature,
    FeatureCall,
    Join,
    PerUnit,
    Projection,
    Relation,
    Union,
    Values,
    Window,
)
from discreet.plan.types import Type
from discreet.privacy import Neighbours, Unit
from discreet.release import Release

LINES = {name: (line, asked) for name, line, asked in clinic.make_lines()}
LIMITS = ContributionLimits(max_groups=2, max_rows_per_group=3)
CLINIC = clinic.make_catalog(LIMITS, Neighbours.ADD_REMOVE)


def in_memory(sources: Mapping[str, Any], catalog: Catalog) -> Engine:
    return MemoryEngine(sources, catalog)


# Neighbours


def counted(dataset: Dataset, name: str) -> Counter[str]:
    return Counter(repr(sorted(row.items())) for row in dataset[name])


def units_of(dataset: Dataset) -> dict[str, dict[Any, Counter[str]]]:
    """For each table, what each unit has there, found by following the links in the plainest way."""
    visits: dict[Any, set[Any]] = {}
    for row in dataset["visits"]:
        visits.setdefault(row["visit"], set()).add(row["visitor"])
    labs: dict[Any, set[Any]] = {}
    for row in dataset["labs"]:
        labs.setdefault(row["lab"], set()).update(() if row["visit"] is None else visits.get(row["visit"], ()))
    whose: dict[str, Callable[[Any], Any]] = {
        "patients": lambda row: {row["person"]},
        "workers": lambda row: {row["person"]},
        "visits": lambda row: {row["visitor"]},
        "labs": lambda row: () if row["visit"] is None else visits.get(row["visit"], ()),
        "notes": lambda row: () if row["lab"] is None else labs.get(row["lab"], ()),
    }
    found: dict[str, dict[Any, Counter[str]]] = {}
    for name, owners in whose.items():
        found[name] = {}
        for row in dataset[name]:
            for unit in set(owners(row)) - {None}:
                found[name].setdefault(unit, Counter())[repr(sorted(row.items()))] += 1
    return found


@pytest.mark.parametrize("relation", list(Neighbours))
def test_neighbours_differ_in_one_unit_in_all_tables(relation: Neighbours) -> None:
    """What every other unit has in every table stays the same, and so do public tables; the list has what hurts."""
    dataset = clinic.make_rows()
    before = units_of(dataset)
    found = list(make_changes(dataset, CLINIC, relation))
    assert len(found) > 100
    for change in found:
        after = units_of(change.after)
        assert counted(dataset, "wards") == counted(change.after, "wards")
        moved = {
            unit
            for name in before
            for unit in before[name].keys() | after[name].keys()
            if before[name].get(unit) != after[name].get(unit)
        }
        assert len(moved) <= 1, change.what
    text = " ".join(change.what for change in found)
    for word in ("nan", "NULL", "upper bounds", "keys that others have", "lead nowhere", "notes.words", "visits only"):
        assert word in text
    assert ("remove" in text) == (relation is Neighbours.ADD_REMOVE)


def after(what: str) -> Dataset:
    return next(c.after for c in make_changes(clinic.make_rows(), CLINIC, Neighbours.ADD_REMOVE) if what in c.what)


def new_rows(dataset: Dataset, name: str) -> list[Any]:
    return list(dataset[name])[len(clinic.make_rows()[name]) :]


def test_a_newcomer_has_rows_in_every_private_table() -> None:
    """With foreign keys that fit together, down to the notes of the labs of its visits."""
    dataset = after("upper bounds")
    visits, labs, notes = (new_rows(dataset, name) for name in ("visits", "labs", "notes"))
    assert {row["visitor"] for row in visits} == {row["person"] for row in new_rows(dataset, "workers")}
    assert {row["visit"] for row in labs} == {row["visit"] for row in visits}
    assert {row["lab"] for row in notes} == {row["lab"] for row in labs}
    assert len({row["visit"] for row in visits}) == len(visits) > 20
    (unit,) = {row["visitor"] for row in visits}
    assert units_of(dataset)["notes"][unit].total() == len(notes)


def test_a_newcomer_may_have_keys_that_others_have() -> None:
    """Then rows that refer to them are its own as well, and stay the others'; it brings none of its own."""
    dataset = after("keys that others have")
    known = {row["visit"] for row in clinic.make_rows()["visits"]}
    visits = new_rows(dataset, "visits")
    assert visits and {row["visit"] for row in visits} <= known | {row["visit"] for row in clinic.make_rows()["labs"]}
    assert new_rows(dataset, "labs") == [] and units_of(dataset)["labs"][visits[0]["visitor"]]


def test_a_newcomer_may_have_keys_that_lead_nowhere() -> None:
    labs = new_rows(after("lead nowhere"), "labs")
    assert None in {row["visit"] for row in labs} and {row["visit"] for row in labs} - {None}


def test_rows_of_several_units_stay_when_one_leaves() -> None:
    kin = Ownership(clinic.make_rows(), CLINIC)
    owners = kin.find_owners()
    assert any(len(units) > 1 for units in owners["labs"]) and any(not units for units in owners["labs"])
    assert {units for row, units in zip(clinic.make_rows()["labs"], owners["labs"]) if row["visit"] is None} == {
        frozenset()
    }
    for unit in kin.list_units():
        kept = kin.remove_unit(unit)
        assert len(kept["labs"]) == sum(units != {unit} for units in owners["labs"])
        assert len(kin.remove_unit(unit, orphans=True)["labs"]) == len(owners["labs"])
        assert unit not in {row["visitor"] for row in kept["visits"]}


def test_an_owner_column_of_another_name() -> None:
    """One table alone: its own column names the unit, whatever the unit is called elsewhere."""
    table = CLINIC.find_table("visits")
    found = list(neighbours.make_neighbours(clinic.make_rows()["visits"], table, Neighbours.ADD_REMOVE))
    assert len(found) > 40
    assert all(set(row) == set(table.columns) for pair in found for row in pair.after)


def test_one_table_of_a_dataset_alone() -> None:
    """A public table has no neighbours, and one that reaches its unit by others is not alone."""
    rows = clinic.make_rows()
    assert list(neighbours.make_neighbours(rows["wards"], CLINIC.find_table("wards"), Neighbours.ADD_REMOVE)) == []
    with pytest.raises(UsageError, match="whole dataset"):
        list(neighbours.make_neighbours(rows["labs"], CLINIC.find_table("labs"), Neighbours.ADD_REMOVE))


def test_a_table_without_rows_is_refused() -> None:
    rows = clinic.make_rows()
    del rows["labs"], rows["notes"]
    with pytest.raises(UsageError, match="labs, notes"):
        list(make_changes(rows, CLINIC, Neighbours.ADD_REMOVE))


@pytest.mark.parametrize("relation", list(Neighbours))
def test_rows_as_units_in_several_tables(relation: Neighbours) -> None:
    """Then one row of one table differs; every private table has its turn."""
    plain = {
        name: TableFacts(
            name=name,
            columns=facts.columns,
            unit=Unit(),
            limits=ContributionLimits(),
            public=name == "wards",
            owner=None,
        )
        for name, facts in CLINIC.tables.items()
    }
    dataset = clinic.make_rows()
    touched = set()
    for change in make_changes(dataset, Catalog(tables=plain, neighbours=relation), relation, most=60):
        moved = {name for name in dataset if counted(dataset, name) != counted(change.after, name)}
        assert len(moved) <= 1 and all(abs(len(dataset[n]) - len(change.after[n])) <= 1 for n in moved)
        touched |= moved
    assert touched == dataset.keys() - {"wards"}


# Right questions


@pytest.mark.parametrize("name", list(LINES))
def test_questions_hold_on_the_memory_engine(name: str) -> None:
    """Every type of question over several tables, in the engine that is easy to read."""
    line, asked = LINES[name]
    found = check_questions(replace(line, make=in_memory), clinic.make_rows(), asked, most=8)
    assert [str(f) for f in found if not f] == []


ENDED = (*clinic.CHOICES[:2], clinic.PRIVATE_KEYS[1])


@pytest.mark.parametrize("name", [name for name, (_, asked) in LINES.items() if set(asked) & set(ENDED)])
def test_choices_with_ends_hold(name: str) -> None:
    """Quantiles whose ends are bought: the same neighbours, and one mechanism more."""
    line, asked = LINES[name]
    ended = replace(line, make=in_memory, offer={**line.offer, "ends": True})
    found = check_questions(ended, clinic.make_rows(), [each for each in asked if each in ENDED], most=8)
    assert found and [str(f) for f in found if not f] == []


def test_questions_hold_on_duckdb() -> None:
    """A few neighbours in the engine for real data; the long run has more."""
    line, asked = LINES["clinic, groups"]
    assert [str(f) for f in check_questions(line, clinic.make_rows(), asked[:6], most=2) if not f] == []


@pytest.mark.long
@pytest.mark.parametrize("name", list(LINES))
def test_questions_hold_on_duckdb_for_many_neighbours(name: str) -> None:
    line, asked = LINES[name]
    assert [str(f) for f in check_questions(line, clinic.make_rows(), asked, most=50) if not f] == []


def test_private_keys_are_named_in_the_audit() -> None:
    """At that line's price some keys are named, so that noise behind private keys is compared as well."""
    line, asked = LINES["clinic, private keys"]
    engine = replace(line, make=in_memory).open(clinic.make_rows(), bytes(16))
    recorded, _, _ = line.ask(engine, asked[0])
    assert isinstance(recorded.calls[0].mechanism, WeightedSelection)
    joint, _, _ = line.ask(engine, asked[2])
    assert [type(call.mechanism) for call in joint.calls] == [GaussianThreshold]
    assert sum(bool(line.ask(engine, asked[0])[0].output[0]["doctor"]) for _ in range(5)) > 0


# Broken ones


def rewritten(relation: Any, change: Callable[[Any], Any]) -> Any:
    """A relation with every node changed, innermost first."""
    if isinstance(relation, Join):
        left, right = rewritten(relation.left, change), rewritten(relation.right, change)
        return change(replace(relation, left=left, right=right))
    if isinstance(relation, Union):
        return change(replace(relation, sources=tuple(rewritten(s, change) for s in relation.sources)))
    source = getattr(relation, "source", None)
    return change(relation if source is None else replace(relation, source=rewritten(source, change)))


def units_apart(node: Relation) -> Relation:
    """A join that forgets to equate the units of its sides."""
    if not isinstance(node, Join):
        return node
    units = {"person", "visitor", "unit"}
    names = [(getattr(a, "name", ""), getattr(b, "name", "")) for a, b in node.on]
    return replace(node, on=tuple(p for p, (a, b) in zip(node.on, names) if not (a in units and b in units)))


def one_part(node: Relation) -> Relation:
    return replace(node, parts=()) if isinstance(node, Window) else node


def no_truncation(node: Relation) -> Relation:
    return replace(node, caps=None) if isinstance(node, Join) else node


def one_owner(node: Relation) -> Relation:
    """Linked rows that go to one of the units that their key leads to: the last of them takes them from the others."""
    if not isinstance(node, Distinct) or not isinstance(node.source, Projection):
        return node
    pairs = node.source
    unit = next((e for n, e in pairs.columns if n == "unit"), None)
    if unit is None:
        return node
    last = FeatureCall(Feature.MAX, unit, unit.type)
    return PerUnit(pairs.source, pairs.name, tuple((n, e) for n, e in pairs.columns if n == "key"), (("unit", last),))


@dataclass
class Bent:
    """An engine that runs a changed plan."""

    plain: MemoryEngine
    change: Callable[[BoundedPlan], BoundedPlan]

    @property
    def capabilities(self) -> Capabilities:
        return self.plain.capabilities

    def schema(self, table: str) -> Any:
        return self.plain.schema(table)

    def version(self, table: str) -> str:
        return self.plain.version(table)

    def count_public(self, table: str, columns: tuple[str, ...]) -> int:
        return self.plain.count_public(table, columns)

    def read_public(self, table: str) -> Values:
        return self.plain.read_public(table)

    def prepare(self, table: str) -> None:
        self.plain.prepare(table)

    def close(self) -> None:
        self.plain.close()

    def run(
        self, bounded: BoundedPlan, *, salt: bytes, watch: ProgressCallback | None = None, generous: bool = False
    ) -> Groups:
        return self.plain.run(self.change(bounded), salt=salt, watch=watch, generous=generous)

    def tabulate(
        self, tabulation: Tabulation, *, salt: bytes, watch: ProgressCallback | None = None, generous: bool = False
    ) -> tuple[Integers, ...]:
        return self.plain.tabulate(tabulation, salt=salt, watch=watch, generous=generous)


def bent(line: CuratorLine, node: Callable[[Any], Relation]) -> CuratorLine:
    def change(bounded: BoundedPlan) -> BoundedPlan:
        return replace(bounded, source=rewritten(bounded.source, node))

    return forgetting(line, change)


def forgetting(line: CuratorLine, change: Callable[[BoundedPlan], BoundedPlan]) -> CuratorLine:
    """A line whose engine runs another plan than the one that was priced."""
    return replace(line, make=lambda sources, catalog: Bent(MemoryEngine(sources, catalog), change))


LINE = replace(LINES["clinic, groups"][0], make=in_memory)
BROKEN_PLANS = (
    ("a join on nothing", units_apart, clinic.JOINS[0]),
    ("a join on a key that several people have", units_apart, clinic.JOINS[1]),
    ("a full join on nothing", units_apart, clinic.JOINS[4]),
    ("whether anybody works in a town", units_apart, clinic.JOINS[5]),
    ("a window over everybody", one_part, clinic.FEATURES[2]),
    ("a join that is not truncated", no_truncation, clinic.JOINS[6]),
    ("linked rows that go to the last who has their key", one_owner, clinic.JOINS[2]),
)


@pytest.mark.parametrize(("what", "node", "question"), BROKEN_PLANS, ids=[what for what, _, _ in BROKEN_PLANS])
def test_broken_plans_are_caught(what: str, node: Callable[[Any], Relation], question: str) -> None:
    """An engine that runs a plan which does not keep units apart is found out, within the first few neighbours."""
    finding = check_question(bent(LINE, node), clinic.make_rows(), question, most=4)
    assert finding.verdict is Verdict.BROKEN, what
    assert finding.witness is not None and finding.witness.second
    assert check_question(LINE, clinic.make_rows(), question, most=4)


def caught(question: str, line: CuratorLine = LINE, rows: RowsOrDataset | None = None) -> str:
    finding = check_question(line, rows or clinic.make_rows(), question, most=4)
    assert finding.verdict is Verdict.BROKEN, finding
    return finding.detail


def test_a_reach_of_half_the_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quantiles that are calibrated for fewer rows than a unit may have, and for fewer groups."""

    def halved(bounded: BoundedPlan, relation: Neighbours) -> Reach:
        true = reach(bounded, relation)
        return replace(true, rows=true.rows // 2)

    monkeypatch.setattr(price, "reach", halved)
    assert "rows of a group come or go, declared 25165824" in caught(clinic.CHOICES[0])  # 1.5 rows, in parts
    monkeypatch.setattr(price, "reach", lambda bounded, relation: replace(reach(bounded, relation), groups=1))
    assert f"bundles of {3 << MOST_BITS} rows differ, declared 1" in caught(clinic.CHOICES[0])


def test_weights_for_too_few_groups_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A threshold for units in one group, where they may be in two, is too low."""

    def single(**options: Any) -> Any:
        return better_selection(**{**options, "max_groups": 1})

    monkeypatch.setattr(price, "better_selection", single)
    line = replace(LINES["clinic, private keys"][0], make=in_memory)
    assert "the weights of 2 keys differ, declared 1" in caught(clinic.PRIVATE_KEYS[0], line)


def test_a_threshold_that_is_too_low_is_caught() -> None:
    """The bar itself, by formula: the sound one holds, and one that is half a weight lower does not."""
    rule = WeightedSelection(rho=0.2, delta=0.01, max_groups=2)
    new, claim = rule.weight(1), (0, 0.01)
    assert check_law(rule.probability, 0, new, (False, True), claim, whole=True)
    low = WeightedSelection(rho=0.2, delta=0.01, max_groups=2)
    low.__dict__["bar"] = rule.bar - new // 2
    assert check_law(low.probability, 0, new, (False, True), claim, whole=True).verdict is Verdict.BROKEN


def test_weights_that_are_too_large_are_caught() -> None:
    """An engine that adds more of a unit's weight to its groups than it may."""

    def change(bounded: BoundedPlan) -> BoundedPlan:
        doubled = (replace(m, last=2 * m.last) if m.counts is Counts.WEIGHT else m for m in bounded.measures)
        return replace(bounded, measures=tuple(doubled))

    line = LINES["clinic, private keys"][0]
    assert "weight" in caught(clinic.PRIVATE_KEYS[0], forgetting(line, change))


def test_distinct_values_before_bounding_are_caught() -> None:
    """All values of a unit count, however few it may bring."""

    def change(bounded: BoundedPlan) -> BoundedPlan:
        return replace(bounded, measures=tuple(replace(measure, max_values=10**6) for measure in bounded.measures))

    line = forgetting(LINE, change)
    assert "apart" in caught(clinic.CHOICES[2], line) or "moved by" in caught(clinic.CHOICES[2], line)


def test_sums_that_are_not_clamped_are_caught() -> None:
    """Bounds on what a unit adds to a group that the engine forgets."""

    def change(bounded: BoundedPlan) -> BoundedPlan:
        return replace(bounded, measures=tuple(replace(measure, partial=None) for measure in bounded.measures))

    assert "apart" in caught(clinic.GOOGLE[0], forgetting(LINES["clinic, bounded sums"][0], change))


def test_groupings_at_the_price_of_one_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three groupings, of which the answer states the cost of the first."""
    from discreet.release import Plan

    def first(plan: Plan) -> Any:
        release: Release = plan.releases[0]
        return release.loss

    monkeypatch.setattr(Plan, "loss", property(first))
    assert "the mechanisms that ran cost" in caught(clinic.GROUPINGS[0])


def test_a_grouping_that_moves_too_far_is_caught() -> None:
    """Every grouping is compared, not only the last: here the finest one forgets its limits."""

    def change(bounded: BoundedPlan) -> BoundedPlan:
        return replace(bounded, max_rows_per_group=10**6) if len(bounded.keys) == 2 else bounded

    line = forgetting(LINE, change)
    assert "differ" in caught(clinic.GROUPINGS[0], line) or "apart" in caught(clinic.GROUPINGS[0], line)


def test_the_unit_of_a_clinic_is_named_in_different_ways() -> None:
    """The data under audit has what questions stumble over: other names, links of links, keys that are not unique."""
    assert CLINIC.find_table("visits").unit_column == Column("visits", "visitor", Type.INTEGER)
    assert CLINIC.find_table("notes").link is not None and CLINIC.find_table("wards").public
    visits = Counter(row["visit"] for row in clinic.make_rows()["visits"])
    assert max(visits.values()) > 1
