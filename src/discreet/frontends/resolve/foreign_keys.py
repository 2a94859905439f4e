"""What declared foreign keys say about rows: which joins pair rows of one unit, and which columns name one unit.

A row and the row that it refers to belong to the same unit. A foreign key of several columns refers to a row only by
all of them together, read from one row. So a join on some of them says nothing, and neither do columns of two rows.

Privacy does not rest on this: whoever asks adds the unit beside the columns. So where the data break the declaration,
rows of different units are still kept apart. It decides what a question means, and whether it is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from discreet.bounding.relation_facts import Owner
from discreet.frontends.resolve.equalities import ExpressionPair
from discreet.frontends.resolve.scope import Origin, Scope
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog, Link, TableFacts
from discreet.plan.expressions import Expression


@dataclass(frozen=True, slots=True)
class _ShownKey:
    """A key of a private table, as one table that is read shows it: by columns of its own, or by a foreign key.

    ``names`` are its columns by those of the key.
    """

    scan: str
    table: str
    names: Mapping[str, str]
    linked: bool

    def is_shown(self, key: str, origins: Iterable[Origin]) -> bool:
        return Origin(self.table, self.names[key], self.scan) in origins


def follows_key(pairs: Sequence[ExpressionPair], left: Scope, right: Scope, catalog: Catalog) -> bool:
    """Whether pairs follow a declared foreign key in all of its columns, or equate two foreign keys to the same key."""
    if not left.facts.units or not right.facts.units:
        return False
    return any(not missing for _, _, missing in _compare_keys(pairs, left, right, catalog))


def find_missing_pairs(pairs: Sequence[ExpressionPair], left: Scope, right: Scope, catalog: Catalog) -> list[str]:
    """The equalities that are missing where pairs follow some columns of a foreign key, in the analyst's names."""
    for ours, theirs, missing in _compare_keys(pairs, left, right, catalog):
        if 0 < len(missing) < len(ours.names):
            words = [(_find_words(left, ours, key), _find_words(right, theirs, key)) for key in missing]
            return [f"{one} = {two}" for one, two in words if one and two]
    return []


def fixes_unit(expressions: Iterable[Expression], scope: Scope, catalog: Catalog) -> bool:
    """Whether rows with the same values belong to one unit, by the codebook.

    One of them is a unique column; or they are a foreign key to a private table, or the key of one that others refer
    to. Whoever uses this adds the unit beside the expressions.
    """
    if scope.facts.owner is not Owner.UNIT:
        return False
    shown: dict[tuple[str, str], set[str]] = {}
    for origin in (origin for expression in expressions for origin in _find_origins(scope, expression)):
        shown.setdefault((origin.table, origin.scan), set()).add(origin.column)
    for (table, _), columns in shown.items():
        facts = catalog.tables[table]
        if facts.public:
            continue
        referred = (set(link.keys) for other in catalog.tables.values() for link in _find_links(other, catalog, table))
        keys = [*(set(link.columns) for link in _find_links(facts, catalog)), *referred]
        if any(facts.columns[column][1].unique for column in columns) or any(key <= columns for key in keys):
            return True
    return False


def _compare_keys(
    pairs: Sequence[ExpressionPair], left: Scope, right: Scope, catalog: Catalog
) -> Iterator[tuple[_ShownKey, _ShownKey, list[str]]]:
    """Keys that both sides show, at least one by a foreign key, and the columns of each that no pair equates."""
    origins = [(_find_origins(left, one), _find_origins(right, two)) for one, two in pairs]
    ours = {origin for found, _ in origins for origin in found}
    theirs = {origin for _, found in origins for origin in found}
    tables = {origin.table for origin in (*ours, *theirs)}
    links = dict.fromkeys(link for name in sorted(tables) for link in _find_links(catalog.tables[name], catalog))
    for parent, keys in dict.fromkeys((link.parent, link.keys) for link in links):
        for one in _show_key(parent, keys, ours, catalog):
            for two in _show_key(parent, keys, theirs, catalog):
                if one.linked or two.linked:
                    equated = {k for k in keys for a, b in origins if one.is_shown(k, a) and two.is_shown(k, b)}
                    yield one, two, [key for key in keys if key not in equated]


def _show_key(parent: str, keys: tuple[str, ...], origins: Iterable[Origin], catalog: Catalog) -> Iterator[_ShownKey]:
    """How the tables of one side show a key: the table itself, and those with a foreign key to it."""
    for table, scan in dict.fromkeys((origin.table, origin.scan) for origin in sorted(origins)):
        if table == parent:
            yield _ShownKey(scan, table, dict(zip(keys, keys)), linked=False)
        for link in _find_links(catalog.tables[table], catalog, parent):
            if link.keys == keys:
                yield _ShownKey(scan, table, {key: column for column, key in link.pairs}, linked=True)


def _find_links(facts: TableFacts, catalog: Catalog, parent: str | None = None) -> list[Link]:
    """The foreign keys of a table to private tables (to one of them), where both rows belong to the same unit.

    A foreign key with the unit's own column is left out, unless it is the one that says whose row it is: it may name
    another unit.
    """
    found = []
    for link in dict.fromkeys((*facts.keys, *(() if facts.link is None else (facts.link,)))):
        other = catalog.tables[link.parent]
        own = None if other.unit_column is None else other.unit_column.name
        if not other.public and parent in (None, link.parent) and (link == facts.link or own not in link.keys):
            found.append(link)
    return found


def _find_origins(scope: Scope, expression: Expression) -> set[Origin]:
    """The declared columns whose values an expression shows unchanged."""
    return {c.origin for c in scope.columns if c.expression == expression and c.origin is not None}


def _find_words(scope: Scope, shown: _ShownKey, key: str) -> str | None:
    origin = Origin(shown.table, shown.names[key], shown.scan)
    return next((column.words for column in scope.columns if column.origin == origin), None)
