"""How tables reach their unit: by name, by foreign keys, or not at all; and what is public."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.bounding.relation_facts import Owner
from discreet.bounding.stability import find_relation_facts
from discreet.codebook import Codebook
from discreet.codebook.check_lines import Grade
from discreet.codebook.entries import Document
from discreet.codebook.entry_reader import read_entries
from discreet.codebook.owners import MAX_CHAIN, Way, find_ways, foreign_keys_of
from discreet.codebook.unit_checks import check_table
from discreet.engines.duckdb.engine import DuckDBEngine
from discreet.errors import CodebookError
from discreet.plan.catalog import Catalog, ContributionLimits, Link
from discreet.plan.expressions import Column
from discreet.plan.reach import reach
from discreet.plan.types import Type
from discreet.privacy import Budget, Unit

HEAD = """
name = "hospital"
unit = "patients.patient_id"
[budget]
epsilon = 1
"""
PATIENTS = """
[tables.patients]
source = "p.parquet"
max_rows = 1
[tables.patients.columns]
patient_id = "integer"
district = { type = "text", max_frequency = 50 }
"""
VISITS = """
[tables.visits]
source = "v.parquet"
foreign_keys = { ward = "wards.ward" }
max_rows = 20
[tables.visits.columns]
visit_id = "integer"
patient_id = "integer"
ward = "text"
"""
LABS = """
[tables.labs]
source = "l.parquet"
foreign_keys = { visit = "visits.visit_id" }
max_rows = 10
[tables.labs.columns]
visit = "integer"
lab_id = "integer"
"""
NOTES = """
[tables.notes]
source = "n.parquet"
foreign_keys = { lab = "labs.lab_id" }
max_groups = 3
max_rows_per_group = 2
[tables.notes.columns]
lab = "integer"
"""
WARDS = """
[tables.wards]
source = "w.parquet"
public = true
rows = 8
[tables.wards.columns]
ward = { type = "text", unique = true }
floor = { type = "integer", bounds = [0, 5] }
"""
# A column of the unit's name refers to where the unit is at home, without saying so.
HOME = Link(("patient_id",), "patients", ("patient_id",))
GOOD = HEAD + PATIENTS + VISITS + LABS + NOTES + WARDS


def catalog(text: str) -> Catalog:
    return Codebook.read(text).catalog()


def wrong(text: str) -> str:
    """What a codebook is refused with."""
    with pytest.raises(CodebookError) as caught:
        Codebook.read(text)
    assert str(caught.value).endswith("Nothing was charged.")
    assert all(problem.entry and problem.rule and problem.fix for problem in caught.value.problems)
    return " ".join(str(caught.value).split())


def table(name: str, *, columns: str, keys: str = "", more: str = "max_rows = 1") -> str:
    """A table in short."""
    return (
        f'[tables.{name}]\nsource = "x.parquet"\nforeign_keys = {{ {keys} }}\n{more}\n'
        f"[tables.{name}.columns]\n{columns}\n"
    )


def test_everything_reaches_the_catalog() -> None:
    """Owners, links, foreign keys, public tables, look-ups and frequencies arrive as facts."""
    found = catalog(GOOD)
    patients, visits, labs, notes, wards = (
        found.tables[name] for name in ("patients", "visits", "labs", "notes", "wards")
    )
    assert {facts.unit for facts in found.tables.values()} == {Unit("patient_id")} == {found.unit}
    assert patients.owner is visits.owner is None and patients.link is visits.link is None
    assert visits.unit_column == Column("visits", "patient_id", Type.INTEGER)
    assert labs.link == Link(("visit",), "visits", ("visit_id",)) and labs.unit_column is None
    assert notes.link == Link(("lab",), "labs", ("lab_id",)) and notes.limits == ContributionLimits(
        max_groups=3, max_rows_per_group=2
    )
    assert visits.keys == (Link(("ward",), "wards", ("ward",)), HOME)
    assert labs.keys == (labs.link,) and patients.keys == ()
    assert wards.public and not labs.public and wards.limits == ContributionLimits() and wards.unit_column is None
    assert wards.columns["ward"][1].unique and not wards.columns["floor"][1].unique
    assert patients.columns["district"][1].frequency == 50 and visits.columns["ward"][1].frequency is None
    assert visits.columns["patient_id"][1].constant and not labs.columns["visit"][1].constant
    assert Codebook.read(GOOD).size("wards") == (8, None)


@pytest.mark.parametrize("name", ["patients", "visits", "labs", "notes", "wards"])
def test_rows_reach_their_unit(name: str) -> None:
    """What the planner makes of a table's name keeps units apart; public rows are nobody's."""
    found = catalog(GOOD)
    reached = reach(name, found)
    assert find_relation_facts(reached.relation, found).owner is (Owner.NOBODY if name == "wards" else Owner.UNIT)
    assert (reached.unit is None) == (name == "wards")


def test_a_column_that_refers_to_the_unit_names_it() -> None:
    """Whatever it is called, also by a column that refers to it in turn; then it is the owner, without a join."""
    calls = table("calls", columns='caller = "integer"', keys='caller = "patients.patient_id"')
    later = table("replies", columns='who = "integer"', keys='who = "calls.caller"')
    found = catalog(HEAD + later + calls + PATIENTS)
    assert found.tables["calls"].owner == "caller" and found.tables["replies"].owner == "who"
    assert (
        found.tables["replies"].link is None
        and found.tables["replies"].find_column("who") == found.tables["replies"].unit_column
    )
    assert found.tables["calls"].columns["caller"][1].constant
    assert find_relation_facts(reach("calls", found).relation, found).owner is Owner.UNIT


def test_the_unit_of_every_table() -> None:
    """The old form: a bare column; and foreign keys for tables that lack it."""
    found = catalog(GOOD.replace('"patients.patient_id"', '"patient_id"'))
    assert found.tables["visits"].keys == (Link(("ward",), "wards", ("ward",)),)
    assert found.unit == Unit("patient_id") and found.tables["labs"].link is not None
    assert catalog(HEAD.replace("patients.patient_id", "patient_id") + PATIENTS).tables["patients"].owner is None


def test_the_name_of_the_unit_comes_first() -> None:
    """A row that names the unit takes no way around, and no other foreign key to the unit counts."""
    text = VISITS.replace('ward = "wards.ward"', 'by = "patients.patient_id", before = "visits.visit_id"')
    found = catalog(HEAD + PATIENTS + text + 'by = "integer"\nbefore = "integer"\n')
    assert found.tables["visits"].owner is None and found.tables["visits"].link is None
    assert found.tables["visits"].keys == (
        Link(("by",), "patients", ("patient_id",)),
        Link(("before",), "visits", ("visit_id",)),
        HOME,
    )


def test_an_id_is_every_tables_own() -> None:
    """With unit = "people.id" the id of another table is not a person's: it needs a foreign key."""
    head = HEAD.replace("patients.patient_id", "people.id")
    people = table("people", columns='id = "integer"\nboss = "integer"', keys='boss = "people.id"')
    visits = table("visits", columns='id = "integer"\nperson_id = "integer"')
    assert "tables.visits.columns lacks the unit column 'id'" in wrong(head + people + visits)
    found = catalog(head + people + visits.replace("{  }", '{ person_id = "people.id" }'))
    assert found.tables["visits"].owner == "person_id" and found.tables["people"].owner is None
    assert found.tables["people"].unit_column == Column("people", "id", Type.INTEGER)
    # A codebook that says so for every table is believed.
    bare = catalog(head.replace("people.id", "id") + people + visits)
    assert bare.tables["visits"].unit_column == Column("visits", "id", Type.INTEGER)


def test_the_shortest_chain_counts_then_the_first() -> None:
    """A longer way that is declared earlier is not taken; of two equally long ones, the first is."""
    direct = (
        NOTES.replace('lab = "labs.lab_id"', 'lab = "labs.lab_id", visit = "visits.visit_id"') + 'visit = "integer"\n'
    )
    found = catalog(HEAD + PATIENTS + VISITS + LABS + direct + WARDS)
    assert found.tables["notes"].link == Link(("visit",), "visits", ("visit_id",))
    assert [link.columns for link in found.tables["notes"].keys] == [("lab",), ("visit",)]
    two = table("two", columns='a = "integer"\nb = "integer"', keys='b = "visits.visit_id", a = "visits.visit_id"')
    assert catalog(HEAD + two + PATIENTS + VISITS + WARDS).tables["two"].link == Link(("b",), "visits", ("visit_id",))


def test_row_units_and_public_tables() -> None:
    """Where a row is its own unit, public tables and foreign keys are fine, and nothing else is needed."""
    text = HEAD.replace("patients.patient_id", "row") + VISITS.replace("max_rows = 20", "") + WARDS
    found = catalog(text)
    assert found.unit == Unit() and found.tables["visits"].limits.max_rows == 1 and found.tables["wards"].public
    assert found.tables["visits"].keys == (Link(("ward",), "wards", ("ward",)),)
    assert found.tables["visits"].owner is None and found.tables["visits"].link is None
    assert (
        found.tables["wards"].limits == ContributionLimits()
        and find_relation_facts(reach("wards", found).relation, found).owner is Owner.NOBODY
    )


def test_names_with_dots() -> None:
    """A table or a column may have dots in its name; the declared one is meant."""
    head = HEAD.replace("patients.patient_id", "the.people.id.no")
    text = table('"the.people"', columns='"id.no" = "integer"') + table(
        "visits", columns='"who.ever" = "integer"', keys='"who.ever" = "the.people.id.no"'
    )
    found = catalog(head + text)
    assert found.unit == Unit("id.no") and found.tables["visits"].owner == "who.ever"
    bare = catalog(HEAD.replace("patients.patient_id", "id.no") + table("a", columns='"id.no" = "text"'))
    assert bare.unit == Unit("id.no")


CHAIN = [table("t0", columns='patient_id = "integer"\nk = "integer"')] + [
    table(f"t{i}", columns='up = "integer"\nk = "integer"', keys=f'up = "t{i - 1}.k"') for i in range(1, MAX_CHAIN + 2)
]


def test_long_chains() -> None:
    """As many steps as allowed are fine; one more is refused, not followed."""
    head = HEAD.replace("patients.", "t0.")
    found = catalog(head + "".join(reversed(CHAIN[: MAX_CHAIN + 1])))
    assert find_relation_facts(reach(f"t{MAX_CHAIN}", found).relation, found).owner is Owner.UNIT
    message = wrong(head + "".join(CHAIN))
    assert f"tables.t{MAX_CHAIN + 1}.foreign_keys are too far away from the unit" in message and "nearer" in message


WAYS = "Say how its rows reach it, foreign_keys = {"
RULES = [
    (
        "no way",
        GOOD.replace('foreign_keys = { visit = "visits.visit_id" }', ""),
        "tables.labs.columns lacks the unit column 'patient_id'",
    ),
    ("and its fix", GOOD.replace('foreign_keys = { visit = "visits.visit_id" }', ""), WAYS),
    (
        "or public",
        GOOD.replace('foreign_keys = { visit = "visits.visit_id" }', ""),
        "or that they belong to nobody, public = true.",
    ),
    (
        "a near name",
        GOOD.replace('patient_id = "integer"\nward', 'patientid = "integer"\nward'),
        "tables.visits.foreign_keys lead to wards, and not to the unit 'patient_id'",
    ),
    (
        "a near name without keys",
        HEAD + PATIENTS + table("x", columns='patientid = "integer"'),
        "Did you mean 'patientid'? Say how",
    ),
    (
        "dead end",
        HEAD + PATIENTS + WARDS + table("x", columns='w = "text"', keys='w = "wards.ward"'),
        "tables.x.foreign_keys lead to wards, and not to the unit",
    ),
    (
        "circle",
        HEAD
        + PATIENTS
        + table("x", columns='k = "integer"', keys='k = "y.k"')
        + table("y", columns='k = "integer"', keys='k = "x.k"'),
        "tables.x.foreign_keys lead in a circle (x → y → x)",
    ),
    (
        "circle of others",
        HEAD
        + PATIENTS
        + table("z", columns='k = "integer"', keys='k = "x.k"')
        + table("x", columns='k = "integer"\nl = "integer"', keys='k = "x.l"'),
        "tables.z.foreign_keys lead in a circle (x → x)",
    ),
    (
        "own circle",
        HEAD + PATIENTS + table("x", columns='k = "integer"\nl = "integer"', keys='k = "x.l"'),
        "tables.x.foreign_keys lead in a circle (x → x)",
    ),
    (
        "itself",
        HEAD + PATIENTS + table("x", columns='k = "integer"', keys='k = "x.k"'),
        "tables.x.foreign_keys.k refers to itself",
    ),
    (
        "no such column here",
        GOOD.replace("{ visit =", "{ visits ="),
        "tables.labs.foreign_keys.visits is not a declared column of this table. Did you mean 'visit'?",
    ),
    (
        "no such table",
        GOOD.replace("visits.visit_id", "visit.visit_id"),
        "labs.foreign_keys.visit refers to a column that is not declared. Did you mean 'visits'?",
    ),
    (
        "no such column there",
        GOOD.replace("visits.visit_id", "visits.visitid"),
        "refers to a column that is not declared. Did you mean 'visit_id'?",
    ),
    (
        "no table said",
        GOOD.replace("visits.visit_id", "visit_id"),
        "refers to a column that is not declared. Write the table, too",
    ),
    (
        "other type",
        GOOD.replace('visit = "integer"', 'visit = "text"'),
        "tables.labs.foreign_keys.visit holds text and refers to integer",
    ),
    (
        "reals",
        GOOD.replace('visit = "integer"', 'visit = "real"').replace('visit_id = "integer"', 'visit_id = "real"'),
        "is a real, and reals are no keys",
    ),
    (
        "public to private",
        GOOD.replace("rows = 8", 'foreign_keys = { floor = "patients.patient_id" }'),
        "tables.wards.foreign_keys.floor refers from a public table to a private one",
    ),
    (
        "unit elsewhere",
        GOOD.replace('{ ward = "wards.ward" }', '{ patient_id = "labs.lab_id" }'),
        "foreign_keys.patient_id names the unit and refers to something else",
    ),
    (
        "unit to public",
        GOOD.replace('{ ward = "wards.ward" }', '{ patient_id = "wards.floor" }'),
        "foreign_keys.patient_id names the unit and refers to something else",
    ),
    (
        "public unit",
        GOOD.replace("max_rows = 1\n", "public = true\n"),
        "unit is a column of the public table 'patients'",
    ),
    (
        "unit undeclared",
        GOOD.replace('"patients.patient_id"', '"patients.patient"'),
        "unit names a column that is not declared. Did you mean 'patient_id'?",
    ),
    (
        "table undeclared",
        GOOD.replace('"patients.patient_id"', '"patient.patient_id"'),
        "unit names a column that is not declared. Did you mean 'patients'?",
    ),
    ("unit real", GOOD.replace('patient_id = "integer"', 'patient_id = "real"'), "names the unit and cannot be a real"),
    (
        "unit of two types",
        GOOD.replace('visit_id = "integer"\npatient_id = "integer"', 'visit_id = "integer"\npatient_id = "text"'),
        "visits.columns.patient_id names the unit as text, so that it cannot be compared. Declare both alike: what it "
        "names is integer in 'patients'.",
    ),
    (
        "public limits",
        GOOD.replace("rows = 8", "max_rows = 8"),
        "tables.wards.max_rows is for rows of units, and this table is public",
    ),
    (
        "public groups",
        GOOD.replace("rows = 8", "max_groups = 8\nmax_rows_per_group = 1"),
        "tables.wards.max_rows_per_group is for rows of units",
    ),
    ("public units", GOOD.replace("rows = 8", "units = 8"), "tables.wards.units is for rows of units"),
    (
        "public constant",
        GOOD.replace("[0, 5]", "[0, 5], constant_per_unit = true"),
        "tables.wards.columns.floor.constant_per_unit is for rows of units",
    ),
    (
        "public frequency",
        GOOD.replace("[0, 5]", "[0, 5], max_frequency = 2"),
        "tables.wards.columns.floor.max_frequency is for rows of units",
    ),
    (
        "public values",
        GOOD.replace("[0, 5]", "[0, 5], max_values = 2"),
        "tables.wards.columns.floor.max_values is for rows of units",
    ),
    (
        "row values",
        HEAD.replace("patients.patient_id", "row")
        + PATIENTS.replace("max_rows = 1", "").replace("max_frequency = 50", "max_values = 2"),
        "tables.patients.columns.district.max_values is for several rows of units",
    ),
    ("no values", GOOD.replace("max_frequency = 50", "max_values = 0"), "district.max_values must be between 1"),
    (
        "row frequency",
        HEAD.replace("patients.patient_id", "row") + PATIENTS.replace("max_rows = 1", ""),
        "tables.patients.columns.district.max_frequency is for joins of units",
    ),
    (
        "private unique",
        GOOD.replace('lab_id = "integer"', 'lab_id = { type = "integer", unique = true }'),
        "tables.labs.columns.lab_id.unique is for public tables",
    ),
    (
        "all public",
        HEAD.replace("patients.patient_id", "row") + WARDS,
        "tables are all public, so that nobody is protected",
    ),
    ("no limit", GOOD.replace("max_rows = 10", ""), "tables.labs does not say how much one patient_id may contribute"),
    (
        "no list of keys",
        GOOD.replace('{ visit = "visits.visit_id" }', '"visits.visit_id"'),
        "labs.foreign_keys must say which column refers to which",
    ),
    ("no text", GOOD.replace('"visits.visit_id"', "3"), "labs.foreign_keys.visit must be"),
    ("no truth", GOOD.replace("public = true", "public = 1"), "tables.wards.public must be"),
    (
        "zero frequency",
        GOOD.replace("max_frequency = 50", "max_frequency = 0"),
        "district.max_frequency must be between 1",
    ),
    (
        "a word of others",
        GOOD.replace("foreign_keys = { lab", "references = { lab"),
        "tables.notes.references is an unknown word. Did you mean 'foreign_keys'?",
    ),
]


@pytest.mark.parametrize(("text", "rule"), [case[1:] for case in RULES], ids=[case[0] for case in RULES])
def test_what_does_not_fit_is_refused(text: str, rule: str) -> None:
    """Rows of nobody in particular, keys that lead nowhere, and claims that cannot be believed."""
    assert rule in wrong(text)


def test_broken_keys_are_told_once() -> None:
    """A foreign key that is wrong is the one problem, not also that the table reaches nobody."""
    assert wrong(GOOD.replace("visits.visit_id", "visit.visit_id")).count("tables.labs") == 1


FRAMES: dict[str, Any] = {
    "patients": pa.table({"patient_id": [1, 2], "district": ["A", "B"]}),
    "visits": pa.table({"visit_id": [7, 8], "patient_id": [1, 2], "ward": ["X", "Y"]}),
    "labs": pa.table({"visit_id": [7, None], "value": [1.5, 2.5]}),
    "wards": pa.table({"ward": ["X", "Y"], "beds": [3, 4]}),
}
SAID: dict[str, Any] = {
    "unit": "patients.patient_id",
    "max_rows": 5,
    "public": ["wards"],
    "foreign_keys": {"labs.visit_id": "visits.visit_id"},
    "unique": ["ward"],
    "max_frequency": {"ward": 9, "patients.district": 3},
    "budget": Budget(epsilon=1),
}


def test_curate_says_the_same() -> None:
    """From Python: limits are for private tables, bare names mean the tables that they can be about."""
    with discreet.curate(FRAMES, **SAID) as curator:
        found = curator.catalog
        assert found.tables["labs"].link == Link(("visit_id",), "visits", ("visit_id",))
        assert found.tables["wards"].public and found.tables["wards"].limits == ContributionLimits()
        assert found.tables["wards"].columns["ward"][1].unique and not found.tables["visits"].columns["ward"][1].unique
        assert found.tables["visits"].columns["ward"][1].frequency == 9
        assert found.tables["wards"].columns["ward"][1].frequency is None
        assert found.tables["patients"].columns["district"][1].frequency == 3
    bare = Codebook.from_frames(FRAMES, **{**SAID, "foreign_keys": {"visit_id": "visits.visit_id"}}).catalog()
    assert bare.tables["visits"].keys == (HOME,) and len(bare.tables["labs"].keys) == 1


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"public": ["ward"]}, "public: ward is not a table. Did you mean 'wards'?"),
        (
            {"foreign_keys": {"labs.visit": "visits.visit_id"}},
            "foreign_keys: labs.visit is not a column of another table",
        ),
        ({"foreign_keys": {"labs.visit_id": "visits.visit"}}, "refers to a column that is not declared"),
        ({"foreign_keys": {}}, "tables.labs.columns lacks the unit column"),
        ({"unique": ["district"]}, "unique: district is not a column of a public table"),
        ({"unique": ["visits.ward"]}, "tables.visits.columns.ward.unique is for public tables"),
        ({"max_frequency": {"beds": 3}}, "max_frequency: beds is not a column of a private table"),
        ({"max_frequency": {"wards.beds": 3}}, "tables.wards.columns.beds.max_frequency is for rows of units"),
        ({"max_frequency": {"district": 0}}, "max_frequency must be between 1"),
    ],
)
def test_curate_refuses_alike(changes: dict[str, Any], rule: str) -> None:
    """The same rules, and names that are not there."""
    with pytest.raises(CodebookError, match=re.escape(rule)):
        Codebook.from_frames(FRAMES, **{**SAID, **changes})


def test_the_engine_opens_linked_and_public_tables() -> None:
    """Every declared table has its source checked, whoever owns its rows."""
    book = Codebook.from_frames(FRAMES, **SAID)
    engine = DuckDBEngine(FRAMES, book.catalog())
    assert list(engine.schema("wards")) == ["ward", "beds"] and list(engine.schema("labs")) == ["visit_id", "value"]
    engine.close()


NAMES = ("a", "b", "c", "d", "e")
COLUMNS = ("u", "x", "y", "z")


@st.composite
def worlds(draw: st.DrawFn) -> str:
    """Tables with foreign keys at random between columns of one type; the unit is a.u, or u wherever it is."""
    unit = draw(st.sampled_from(["a.u", "u"]))
    text = [f'name = "w"\nunit = "{unit}"\nbudget.epsilon = 1\n']
    for name in NAMES:
        columns = [c for c in COLUMNS if (c != "u" or draw(st.booleans()) or name == "a")]
        targets = st.tuples(st.sampled_from(NAMES), st.sampled_from(COLUMNS))
        wanted = draw(st.dictionaries(st.sampled_from(["x", "y", "z"]), targets, max_size=2))
        keys = ", ".join(f'{c} = "{t}.{k}"' for c, (t, k) in wanted.items() if (t, k) != (name, c))
        declared = "\n".join(f'{c} = "integer"' for c in columns)
        text.append(table(name, columns=declared, keys=keys))
    return "".join(text)


def leads(name: str, document: Document, seen: tuple[str, ...] = ()) -> bool:
    """Whether any foreign keys lead from a table to one that names the unit, found by trying all of them."""
    if "u" in document.tables[name].columns:
        return True
    parents = {link.parent for link in foreign_keys_of(name, document)} - {name, *seen}
    return any(leads(parent, document, (*seen, name)) for parent in parents)


@given(worlds())
@settings(deadline=None, max_examples=120)
def test_ways_are_the_shortest_there_are(text: str) -> None:
    """A table is reached where any keys lead: by its own column, by one that names, or by the first of the nearest."""
    document = read_entries(tomllib.loads(text))
    assert isinstance(document, Document)
    found = find_ways(document)
    assert set(found) == {name for name in NAMES if leads(name, document)}
    for name, way in found.items():
        links = [link for link in foreign_keys_of(name, document) if link.parent in found]
        pairs = [(link.parent, pair) for link in links for pair in link.pairs if link.parent != name]
        naming = [column for parent, (column, key) in pairs if found[parent].owner == key]
        if "u" in document.tables[name].columns:
            assert way == Way(owner="u")
        elif way.link is None:
            assert way.owner in naming and ends_at_the_unit(name, document, found)
        else:
            assert not naming and way.owner is None
            nearest = min(found[link.parent].steps for link in links)
            assert way.steps == nearest + 1
            assert way.link == next(link for link in links if found[link.parent].steps == nearest)


def ends_at_the_unit(name: str, document: Document, found: Mapping[str, Way]) -> bool:
    """Whether a name is one in the end: columns that refer to each other in a circle name nobody."""
    trail = [(name, found[name].owner)]
    while trail[-1][1] != "u":
        links = [link for link in foreign_keys_of(trail[-1][0], document) if link.columns == (trail[-1][1],)]
        trail.append((links[0].parent, links[0].keys[0]))
        if len(set(trail)) < len(trail):
            return False
    return True


TREATMENTS = """
[tables.treatments]
source = "treatments.parquet"
max_rows = 10
[tables.treatments.columns]
patient_id = "integer"
clinic = "text"
number = "integer"
"""
DOSES = """
[tables.doses]
source = "doses.parquet"
foreign_keys = [{ clinic = "treatments.clinic", treatment = "treatments.number" }]
max_rows = 30
[tables.doses.columns]
clinic = "text"
treatment = "integer"
amount = "real"
"""
JOINT = HEAD + PATIENTS + TREATMENTS + DOSES
JOINT_KEY = 'clinic = "treatments.clinic", treatment = "treatments.number"'


def test_several_columns_refer_together() -> None:
    """One entry of a list is one foreign key; a plain table has one for each column, as it always did."""
    doses = catalog(JOINT).tables["doses"]
    key = Link(("clinic", "treatment"), "treatments", ("clinic", "number"))
    assert doses.link == key and doses.keys == (key,) and doses.unit_column is None
    one_by_one = catalog(JOINT.replace(f"[{{ {JOINT_KEY} }}]", f"{{ {JOINT_KEY} }}")).tables["doses"]
    assert one_by_one.keys == (
        Link(("clinic",), "treatments", ("clinic",)),
        Link(("treatment",), "treatments", ("number",)),
    )
    alone = catalog(GOOD.replace('{ visit = "visits.visit_id" }', '[{ visit = "visits.visit_id" }]')).tables["labs"]
    assert alone.link == Link(("visit",), "visits", ("visit_id",))


def test_a_joint_key_with_the_unit_names_the_unit() -> None:
    """Where one column refers to the column that names the unit, a row needs no way around."""
    with_person = JOINT.replace('clinic = "treatments.clinic"', 'person = "treatments.patient_id"')
    doses = catalog(with_person.replace('clinic = "text"\ntreatment', 'person = "integer"\ntreatment')).tables["doses"]
    assert doses.link is None and doses.owner == "person"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (f"[{{ {JOINT_KEY} }}]", "[]", "doses.columns lacks the unit column"),
        (f"[{{ {JOINT_KEY} }}]", "[{}]", "foreign_keys has a foreign key without columns"),
        (f"[{{ {JOINT_KEY} }}]", '["treatments"]', "doses.foreign_keys must say which column refers to which"),
        ('"treatments.number"', "3", "doses.foreign_keys.treatment must be"),
        ('"treatments.number"', '"treatments.nr"', "foreign_keys.treatment refers to a column that is not declared"),
        ('"treatments.number"', '"patients.patient_id"', "(clinic, treatment) that refers to several tables"),
        ('treatment = "treatments.number"', 'amount = "treatments.number"', "amount holds real and refers to integer"),
        (
            'clinic = "treatments.clinic"',
            'amount = "treatments.number", clinic = "treatments.clinic"',
            "(amount, clinic, treatment) that refers to one column twice",
        ),
        ('treatment = "treatments.number"', 'dose = "treatments.number"', "foreign_keys.dose is not a declared column"),
        (JOINT_KEY, 'clinic = "doses.clinic", treatment = "doses.treatment"', "that refers to itself"),
    ],
)
def test_joint_keys_that_are_wrong_are_refused(old: str, new: str, words: str) -> None:
    assert old in JOINT
    with pytest.raises(CodebookError) as caught:
        catalog(JOINT.replace(old, new))
    assert words in str(caught.value)


def test_frames_have_joint_keys() -> None:
    """A list of mappings: each is one foreign key of the table that has all of its columns."""
    treatments = pa.table({"patient_id": [1], "clinic": ["x"], "number": [1]})
    doses = pa.table({"clinic": ["x"], "treatment": [1], "amount": [2.0]})
    said: dict[str, Any] = {"unit": "treatments.patient_id", "max_rows": 3, "budget": Budget(epsilon=1)}
    frames = {"treatments": treatments, "doses": doses}
    key = Link(("clinic", "treatment"), "treatments", ("clinic", "number"))
    for clinic in ("doses.clinic", "clinic"):
        together = [{clinic: "treatments.clinic", "doses.treatment": "treatments.number"}]
        assert Codebook.from_frames(frames, foreign_keys=together, **said).catalog().tables["doses"].link == key
    for wrong, words in (
        ({"clinic": "treatments.clinic", "ward": "treatments.number"}, "foreign_keys: ward is not a column of another"),
        ({"doses.clinic": "x.y", "treatments.number": "x.z"}, "treatments.number are not columns of one table"),
    ):
        with pytest.raises(CodebookError, match=re.escape(words)):
            Codebook.from_frames(frames, foreign_keys=[wrong], **said)


def test_check_says_how_to_write_columns_that_refer_together() -> None:
    """Two foreign keys to columns of one table are probably one."""
    apart = Codebook.read(JOINT.replace(f"[{{ {JOINT_KEY} }}]", f"{{ {JOINT_KEY} }}"))
    fixes = [line.fix for line in check_table("doses", apart) if line.grade is Grade.WEAK]
    assert any(f"write foreign_keys = [{{ {JOINT_KEY} }}]" in fix for fix in fixes)
    together = list(check_table("doses", Codebook.read(JOINT)))
    assert [line.grade for line in together] == [Grade.GOOD]
    assert "(clinic, treatment) → treatments.(clinic, number)" in together[0].finding


def test_names_in_a_circle_are_nobodys() -> None:
    """Two columns that refer to each other name no unit, however often one follows them."""
    circle = table("x", columns='k = "integer"', keys='k = "y.k"') + table(
        "y", columns='k = "integer"', keys='k = "x.k"'
    )
    document = read_entries(tomllib.loads(HEAD + PATIENTS + circle))
    assert isinstance(document, Document) and set(find_ways(document)) == {"patients"}
