"""Scopes: what names mean in a SELECT. A scope has the columns of a FROM, over one relation of the plan.

A name finds a column in any case. A bare name must fit exactly one column; USING merges two columns into one. A scope
also has the facts of its relation (``bounding.stability``), so that it is known to whom the rows belong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from discreet.bounding.relation_facts import Owner, RelationFacts
from discreet.bounding.stability import find_relation_facts
from discreet.errors import QuestionError, UnitLost
from discreet.frontends.terms.positions import Place, refusal
from discreet.frontends.terms.syntax import NameTerm, QueryTerm, SourceTerm, Star, Term
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog, suggest_nearest
from discreet.plan.expressions import Column, Expression
from discreet.plan.relations import Relation, Where, split


class Origin(NamedTuple):
    """A declared column, and the name under which its table is read: columns of one such name are of the same row."""

    table: str
    column: str
    scan: str


@dataclass(frozen=True, slots=True)
class VisibleColumn:
    """A column that a name can mean.

    ``qualifier`` is the name of its table in the question. ``origin`` is the declared column whose values it
    shows unchanged. A column that USING has merged into another one (``merged``) is found by its qualified name only.
    ``implicit`` is the unit of a table that does not have its column but reaches it: a bare name means it only where no
    table has such a column.
    """

    qualifier: str
    name: str
    expression: Expression
    origin: Origin | None = None
    merged: bool = False
    implicit: bool = False

    @property
    def words(self) -> str:
        """The column as the analyst would write it."""
        return f"{self.qualifier}.{self.name}" if self.qualifier else self.name


@dataclass(frozen=True, slots=True)
class SourceName:
    """A table or subquery of FROM: its name in the question, and its name in a refusal."""

    qualifier: str
    title: str


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns that names can mean, their relation, and its facts."""

    relation: Relation
    columns: tuple[VisibleColumn, ...]
    sources: tuple[SourceName, ...]
    facts: RelationFacts

    def find(self, name: NameTerm) -> VisibleColumn:
        """The column that a name means. An unknown or ambiguous name is refused with the names that fit."""
        found = self.find_matches(name)
        if len(found) == 1:
            return found[0]
        if not found:
            raise self._explain_missing(name)
        words = [column.words for column in found]
        if len(set(words)) == 1:
            raise refusal(name.place, f"{words[0]!r} names several columns.", "Give them names of their own with AS.")
        raise refusal(name.place, f"{name.name!r} could be {' or '.join(words[:3])}.", f"Write {words[0]}.")

    def find_matches(self, name: NameTerm) -> list[VisibleColumn]:
        """All columns that a name could mean."""
        same = [column for column in self.columns if column.name.lower() == name.name.lower()]
        if name.qualifier is None:
            bare = [column for column in same if not column.merged]
            return [column for column in bare if not column.implicit] or bare
        return [column for column in same if column.qualifier.lower() == name.qualifier.lower()]

    def expand_star(self, star: Star) -> list[VisibleColumn]:
        """The columns that * or t.* means, in their order."""
        if star.qualifier is None:
            found = [column for column in self.columns if not column.merged]
        else:
            self._check_qualifier(NameTerm("*", star.qualifier, star.place))
            wanted = star.qualifier.lower()
            found = [column for column in self.columns if column.qualifier.lower() == wanted]
        for name in star.without:
            if name.lower() not in {column.name.lower() for column in found}:
                rule = f"EXCLUDE names {name!r}, which is none of the columns."
                raise refusal(star.place, rule, suggest_nearest(name, [column.name for column in found]))
        without = {name.lower() for name in star.without}
        return [column for column in found if column.name.lower() not in without]

    def describe_unit(self, *, qualified: bool = False) -> str | None:
        """The unit of the rows as the analyst would write it; None where no column shows it."""
        found = next((column for column in self.columns if column.expression in self.facts.units), None)
        if found is None:
            return None
        return found.words if qualified or len(self.sources) > 1 else found.name

    def keep_where(self, *conditions: Expression) -> Scope:
        """The rows for which all conditions are true. A condition that is there already is not added again."""
        relation = self.relation
        for condition in conditions:
            if condition not in split(relation)[1]:
                relation = Where(relation, condition)
        return replace(self, relation=relation)

    def rename(self, alias: str, title: str, columns: tuple[str, ...], place: Place | None) -> Scope:
        """The same columns under one table name and new names, as in FROM (...) AS t (a, b)."""
        shown = [column for column in self.columns if not column.merged]
        if len(columns) > len(shown):
            rule = f"{len(columns)} names for {len(shown)} columns."
            raise refusal(place, rule, "Give as many names as there are columns.")
        names = (*columns, *(column.name for column in shown[len(columns) :]))
        renamed = tuple(replace(column, qualifier=alias, name=name) for column, name in zip(shown, names))
        return replace(self, columns=renamed, sources=(SourceName(alias, title),))

    def _explain_missing(self, name: NameTerm) -> Exception:
        if name.qualifier is not None:
            self._check_qualifier(name)
        wanted = (name.qualifier or "").lower()
        sources = [s for s in self.sources if name.qualifier is None or s.qualifier.lower() == wanted]
        here = {s.qualifier.lower() for s in sources}
        names = [c.name for c in self.columns if c.qualifier.lower() in here or not c.qualifier]
        fix = suggest_nearest(name.name, dict.fromkeys(names))
        if name.place is not None and name.place.words.startswith('"'):
            text = name.name.replace("'", "''")
            fix = f"Double quotes are for names; a text is written '{text}'. {fix}"
        if len(sources) == 1:
            return refusal(name.place, f"{sources[0].title} {name.name!r}.", fix)
        return refusal(name.place, f"None of the tables here has a column {name.name!r}.", fix)

    def _check_qualifier(self, name: NameTerm) -> None:
        known_here = [source.qualifier for source in self.sources if source.qualifier]
        if name.qualifier is None or name.qualifier.lower() in {word.lower() for word in known_here}:
            return
        if len(self.sources) == 1:
            rule = f"{name.qualifier!r} is not the table of this question."
            wanted = known_here[0] if known_here else ""
            fix = f"Write {wanted}.{name.name} or just {name.name}." if wanted else f"Write just {name.name}."
            raise refusal(name.place, rule, fix)
        rule = f"{name.qualifier!r} is none of the tables here."
        raise refusal(name.place, rule, f"Here are {', '.join(known_here)}.")


class RelationMaker(Protocol):
    """Makes the relations of one question, for the modules that resolve its parts. Member: ``SourceResolver``."""

    @property
    def catalog(self) -> Catalog: ...

    def make_name(self, base: str) -> str:
        """A free name for a relation."""
        ...

    def resolve_from(self, source: SourceTerm, where: Sequence[Term] = ()) -> Scope:
        """The columns of a FROM."""
        ...

    def resolve_subquery(self, query: QueryTerm, place: Place | None = None) -> Scope:
        """The columns of a SELECT inside the question."""
        ...


def title_of_table(title: str) -> str:
    """The beginning of a refusal where a declared table has no such column."""
    return f"The table {title!r} has no declared column"


def title_of_subquery(alias: str) -> str:
    """The beginning of a refusal where a subquery has no such column."""
    return f"The subquery {alias!r} has no column" if alias else "The subquery has no column"


def find_facts_at(relation: Relation, catalog: Catalog, place: Place | None) -> RelationFacts:
    """The facts of a relation. Where it does not keep units apart, or multiplies rows, the refusal shows the place."""
    try:
        return find_relation_facts(relation, catalog)
    except QuestionError as error:
        raise refusal(place, error.rule, error.fix) from None
    except UnitLost as error:
        raise explain_lost_unit(error, place) from None


def check_owner(facts: RelationFacts, what: str, place: Place | None) -> None:
    """Refuse a construct that needs rows which name their unit, where the rows do not."""
    if facts.owner is Owner.ROW:
        rule = f"Each row is its own unit here, so {what} would look at several units."
        raise refusal(place, rule, "Declare a unit in the codebook, or ask without it.")
    if facts.owner is not Owner.UNIT:
        rule = f"{what} needs rows that say whose they are, and this join has paired rows of different units."
        raise refusal(place, rule, "Join on the unit first.")


def explain_lost_unit(error: UnitLost, place: Place | None) -> Exception:
    """The refusal of a stability rule, with its place in the text."""
    rule, _, fix = str(error).removesuffix(" Nothing was charged.").partition(". ")
    return refusal(place, f"{rule.rstrip('.')}.", fix or "Keep the column that names the unit, and join on it.")


def make_unique_names(names: list[str]) -> Iterator[str]:
    """The same names. A name that occurs again, in any case, gets a number."""
    taken: set[str] = set()
    for name in names:
        free = find_free_name(name, taken)
        taken.add(free.lower())
        yield free


def find_free_name(name: str, taken: Collection[str]) -> str:
    """The name itself, or with the first number that makes it free. ``taken`` holds names in small letters."""
    free, number = name, 1
    while free.lower() in taken:
        number += 1
        free = f"{name} {number}"
    return free


def is_named(column: VisibleColumn) -> bool:
    """Whether a column has the same name in its relation as in the question."""
    return isinstance(column.expression, Column) and column.expression.name.lower() == column.name.lower()
