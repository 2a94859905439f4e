"""The part of the checklist about units: who is protected, how each table reaches its unit, and what is public."""

from __future__ import annotations

from collections.abc import Iterator

from discreet.codebook import owners
from discreet.codebook.check_lines import CheckLine, Grade
from discreet.codebook.codebook import Codebook
from discreet.plan.catalog import Link
from discreet.plan.types import Type

# Words in the names of columns that often say whose row it is.
_OWNERS = ("user", "patient", "person", "customer", "client", "member", "subject", "student", "employee", "household")
# Words in the names of columns that are about one person in any table.
_PERSONAL = (*_OWNERS, "email", "phone", "passport", "ssn", "surname", "first_name", "last_name", "birth")


def check_unit(codebook: Codebook) -> Iterator[CheckLine]:
    """Whether persons are protected, or only single rows."""
    column = codebook.unit.column
    if column is not None:
        yield CheckLine(Grade.GOOD, "unit", f"protects everything that one {column} has in all tables.")
        return
    private = [table for table in codebook.document.tables.values() if not table.public]
    found = sorted({c for table in private for c in table.columns if _looks_like(c, _OWNERS)})
    if found:
        finding = f"protects one row, but there is a column {found[0]!r}: a person with many rows is protected less."
        yield CheckLine(Grade.WEAK, "unit", finding, f'Write unit = "{found[0]}" if it says whose row it is.')
    else:
        yield CheckLine(Grade.GOOD, "unit", "protects one row. That is right where nobody has two.")


def check_table(name: str, codebook: Codebook) -> Iterator[CheckLine]:
    """How the rows of one table reach their unit, or that they are public; and what its foreign keys refer to."""
    if codebook.document.tables[name].public:
        yield _check_public(name, codebook)
    elif codebook.unit.column is not None:
        yield from _check_way(name, codebook)
    yield from _check_references(name, codebook)


def keys_of(name: str, codebook: Codebook) -> frozenset[str]:
    """The columns that name the unit or refer, alone, to another private table. Nobody groups by them."""
    way = owners.find_ways(codebook.document).get(name)
    links = [link for link in owners.foreign_keys_of(name, codebook.document) if len(link.columns) == 1]
    private = {link.columns[0] for link in links if not codebook.document.tables[link.parent].public}
    return frozenset(private | ({way.owner} if way is not None and way.owner is not None else set()))


def _check_public(name: str, codebook: Codebook) -> CheckLine:
    unit_column = codebook.unit.column
    columns = codebook.document.tables[name].columns
    found = [column for column in columns if column == unit_column or _looks_like(column, _PERSONAL)]
    if found:
        finding = f"is public, but its column {found[0]!r} looks like one about people, who are not protected there."
        return CheckLine(Grade.WEAK, f"{name}: unit", finding, "Remove public = true if its rows are about people.")
    return CheckLine(Grade.GOOD, f"{name}: unit", "is public: its rows belong to nobody, and everyone may know them.")


def _check_way(name: str, codebook: Codebook) -> Iterator[CheckLine]:
    document, topic = codebook.document, f"{name}: unit"
    found = owners.find_ways(document)
    way = found[name]
    if way.owner is not None:
        yield CheckLine(Grade.GOOD, topic, f"each row names its unit in {way.owner}.")
    else:
        finding = f"rows reach their unit by {_describe_chain(name, found)}; those that reach nobody are left out."
        yield CheckLine(Grade.GOOD, topic, finding)
    others = owners.find_other_ways(name, document, found)
    if others:
        link = others[0]
        finding = (
            f"also leads to a unit by {_describe_link(link)}: if that is somebody else, a row protects one of the two."
        )
        used = way.owner if way.link is None else ", ".join(way.link.columns)
        fix = f"Check that rows are to be protected for whom {used} leads to."
        if way.link is not None and link.parent == way.link.parent:
            words = ", ".join(f'{c} = "{link.parent}.{k}"' for c, k in (*way.link.pairs, *link.pairs))
            fix += f" If the columns refer to a row together, write foreign_keys = [{{ {words} }}]."
        yield CheckLine(Grade.WEAK, topic, finding, fix)


def _describe_chain(name: str, found: dict[str, owners.Way]) -> str:
    steps = []
    way = found[name]
    while way.link is not None:
        steps.append(_describe_link(way.link))
        way = found[way.link.parent]
    return f"{', then '.join(steps)}, which names it in {way.owner}"


def _check_references(name: str, codebook: Codebook) -> Iterator[CheckLine]:
    """Foreign keys to a column that is not unique according to public facts, so that a row may match several rows."""
    document = codebook.document
    for link in owners.foreign_keys_of(name, document):
        parent, words = document.tables[link.parent], _name_columns(link.columns)
        if parent.public and len(link.keys) == 1 and not parent.columns[link.keys[0]].unique:
            finding = f"refers to {link.parent}.{link.keys[0]}, which is not declared unique: a row may match several."
            fix = f"Add unique = true to {link.keys[0]} of {link.parent} if rows are looked up by it."
            yield CheckLine(Grade.WEAK, f"{name}.{words}", finding, fix)
        elif not parent.public and _is_shared(link, codebook):
            finding = f"refers to {link.parent}.{_name_columns(link.keys)}, which several rows must share: a row may "
            finding += "have several owners."
            fix = "Refer to a column that each row has its own value of, or to several columns together: "
            fix += "foreign_keys = [{ ... }]."
            yield CheckLine(Grade.WEAK, f"{name}.{words}", finding, fix)


def _is_shared(link: Link, codebook: Codebook) -> bool:
    """Whether public facts say that a key of a private table has fewer values than the table has rows."""
    table, values = codebook.catalog().tables[link.parent], 1
    for key in link.keys:
        column, (kind, facts) = table.unit_column, table.columns[key]
        if column is not None and column.name == key:
            return False  # it names the unit, and so does a column that refers to it
        if facts.constant and len(link.keys) == 1:
            return table.limits.max_rows != 1
        if facts.keys is not None:
            values *= len(facts.keys)
        elif kind is Type.INTEGER and facts.low is not None and facts.high is not None:
            values *= int(facts.high - facts.low) + 1
        else:
            return False  # nothing is known of how many values there are
    rows = codebook.size(link.parent)[0]
    return rows is not None and values < rows


def _describe_link(link: Link) -> str:
    return f"{_name_columns(link.columns)} → {link.parent}.{_name_columns(link.keys)}"


def _name_columns(columns: tuple[str, ...]) -> str:
    """One name as it is, and several as (a, b)."""
    return columns[0] if len(columns) == 1 else f"({', '.join(columns)})"


def _looks_like(column: str, words: tuple[str, ...]) -> bool:
    return any(word in column.lower() for word in words)
