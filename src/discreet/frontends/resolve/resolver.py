"""Makes the question from its terms: names become columns, types are checked, and aggregates are collected.

SQL and the chain both come here, so equal questions give equal plans. The steps are:

1. Conditions on rows are split at AND. They keep the order in which they were written, each once.
2. Keys are taken in the order of GROUP BY, each once.
3. In outputs, HAVING and ORDER BY, every aggregate becomes a released number (equal aggregates are one measurement),
  and
   every part that equals a key becomes that key. A column that is still there is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from discreet.errors import UsageError
from discreet.frontends.resolve import output_names
from discreet.frontends.resolve.calls import check_condition, make, split_conditions
from discreet.frontends.resolve.from_tables import SourceResolver
from discreet.frontends.resolve.measurements import Aggregates
from discreet.frontends.resolve.memberships import apply_where
from discreet.frontends.resolve.public_keys import check_grouped
from discreet.frontends.resolve.rows import explain_misplaced, resolve_row
from discreet.frontends.resolve.scope import Scope
from discreet.frontends.terms import grouping_sets
from discreet.frontends.terms.positions import Place, refusal
from discreet.frontends.terms.syntax import (
    AggregateTerm,
    Constant,
    Draft,
    FeatureTerm,
    FunctionTerm,
    GroupingTerm,
    Item,
    MembershipTerm,
    NameTerm,
    Ordinal,
    Sort,
    Star,
    Term,
    WindowTerm,
    aggregates_in,
)
from discreet.plan.catalog import Catalog
from discreet.plan.expressions import Call, Column, Expression, Literal, ReleasedValue, find_columns, walk
from discreet.plan.functions import make_literal
from discreet.plan.nodes import Order, Output, Question, make_grouping_mark
from discreet.plan.relations import Values


def resolve(draft: Draft, catalog: Catalog, public: Mapping[str, Values] | None = None) -> Question:
    """The question that a draft asks of a catalog's tables, and of public rows that it brings."""
    sources = SourceResolver(catalog, public)
    return _Resolver(draft, sources.resolve_from(draft.source, draft.where), sources).resolve_question()


class _Resolver:
    """The state while one question is made: first its keys, then its aggregates in the order in which they occur."""

    def __init__(self, draft: Draft, scope: Scope, sources: SourceResolver) -> None:
        self.draft = draft
        self.kept = sources.kept
        self.scope = scope
        self.scope = apply_where(draft.where, scope, sources, lambda name: self._find_column(name, "WHERE"))
        self.keys: list[Expression] = []
        self.sets: tuple[tuple[int, ...], ...] | None = None
        self.outputs_by_name: dict[str, Expression] = {}  # by name in small letters
        self.aggregates = Aggregates(self._resolve_row, self.scope.facts, self.keys)

    def resolve_question(self) -> Question:
        self._read_keys()
        check_grouped(self.kept, self.keys)
        outputs = self._resolve_outputs()
        self._check_distinct(outputs)
        having = self._resolve_having()
        order = tuple(self._resolve_sort(sort) for sort in self.draft.order)
        if not self.aggregates.found and not any(_reads_key(output.expression) for output in outputs):
            place = self.draft.select[0].place if self.draft.select else None
            rule = "Nothing is asked: there is no aggregate, and no key of GROUP BY."
            raise refusal(place, rule, "Add one, for example COUNT(*).")
        return Question(
            source=self.scope.relation,
            keys=tuple(self.keys),
            aggregates=tuple(self.aggregates.found),
            outputs=outputs,
            having=having,
            order=order,
            limit=self.draft.limit,
            offset=self.draft.offset,
            sets=self.sets,
        )

    # Rows

    def _resolve_row(self, term: Term, clause: str) -> Expression:
        """The expression of a term over one row. Names are columns, and aggregates are refused."""
        return resolve_row(term, lambda name: self._find_column(name, clause), clause)

    def _find_column(self, name: NameTerm, clause: str) -> Expression:
        aliases = {(item.alias or "").lower() for item in self.draft.select}
        if name.qualifier is None and name.name.lower() in aliases and not self.scope.find_matches(name):
            rule = f"{name.name!r} is the name of an output, which {clause} cannot use."
            fix = (
                "Repeat its expression."
                if clause != "WHERE"
                else "Repeat its expression, or use HAVING for aggregates."
            )
            raise refusal(name.place, rule, fix)
        return self.scope.find(name).expression

    # Keys

    def _read_keys(self) -> None:
        if self.draft.group is None:
            terms = [item.term for item in self.draft.select if not self._is_fixed(item.term)]
        else:
            terms = [self._find_key_term(term) for term in self.draft.group]
        positions: list[int] = []
        for term in terms:
            key = self._resolve_row(term, "GROUP BY")
            place = term.place
            if not find_columns(key):
                raise refusal(place, "A key must read a column; this is the same for all rows.", "Leave it out.")
            if key in self.scope.facts.units:
                rule = f"Grouping by {key} would make a group of every single {key}, and none could be shown."
                raise refusal(place, rule, "Group by something that many share.")
            if key not in self.keys:
                self.keys.append(key)
            positions.append(self.keys.index(key))
        self.sets = grouping_sets.renumber_sets(self.draft.sets, positions, len(self.keys))

    def _is_fixed(self, term: Term) -> bool:
        """Whether an output is no key of GROUP BY ALL, because it has an aggregate or is a constant."""
        return isinstance(term, Constant) or bool(aggregates_in(term))

    def _find_key_term(self, term: Term) -> Term:
        """The term of a key. The number or the name of an output is replaced by the term of that output."""
        if isinstance(term, Ordinal):
            return self._find_output(term, "GROUP BY").term
        if isinstance(term, NameTerm) and term.qualifier is None and self.scope.find_matches(term):
            self._check_hidden(term)
        elif isinstance(term, NameTerm) and term.qualifier is None:
            for item in self.draft.select:
                if item.alias is not None and item.alias.lower() == term.name.lower():
                    if aggregates_in(item.term):
                        raise explain_misplaced(replace(aggregates_in(item.term)[0], place=term.place), "GROUP BY")
                    return item.term
        return term

    def _check_hidden(self, name: NameTerm) -> None:
        """Refuse a key that is a column and, under the same name, something else in SELECT.

        SQL groups by the column then: bin(age, 20) AS age with GROUP BY age would make a group of every single age.
        """
        for item in self.draft.select:
            same = item.alias is not None and item.alias.lower() == name.name.lower()
            if not same or aggregates_in(item.term) or isinstance(item.term, GroupingTerm):
                continue
            if self._resolve_row(item.term, "SELECT") != self._resolve_row(name, "GROUP BY"):
                rule = f"{name.name!r} is a column and also the name of an output, and SQL would group by the column."
                fix = f"Write GROUP BY {self.draft.select.index(item) + 1} for the output, or give it another name."
                raise refusal(name.place, rule, fix)

    def _find_output(self, ordinal: Ordinal, clause: str) -> Item:
        count = len(self.draft.select)
        if not 1 <= ordinal.position <= count:
            rule = f"{clause} {ordinal.position}: there {_describe_count(count)}."
            raise refusal(ordinal.place, rule, "Use 1, or a name." if count == 1 else f"Use 1 to {count}, or a name.")
        return self.draft.select[ordinal.position - 1]

    # Released numbers

    def _resolve_outputs(self) -> tuple[Output, ...]:
        expressions = []
        for item in self.draft.select:
            expression = self._resolve_released(item.term, "SELECT")
            expressions.append(expression)
            if item.alias is not None:
                self.outputs_by_name.setdefault(item.alias.lower(), expression)
        measured = [any(find_noisy_parts(e, len(self.keys))) for e in expressions]
        defaults = [self.aggregates.titles.of(expression) for expression in expressions]
        titles = output_names.name_outputs(self.draft.select, defaults, measured)
        for title, expression in zip(titles, expressions):
            self.outputs_by_name.setdefault(title.lower(), expression)
        return tuple(Output(title, expression) for title, expression in zip(titles, expressions))

    def _check_distinct(self, outputs: tuple[Output, ...]) -> None:
        """Refuse SELECT DISTINCT where rows of two groups could be equal; where all keys are shown, groups differ."""
        if not self.draft.distinct or self.draft.group is None:
            return
        shown = {output.expression for output in outputs}
        hidden = [key for i, key in enumerate(self.keys) if ReleasedValue(i, str(key), key.type) not in shown]
        if hidden or self.sets is not None:
            rule = "DISTINCT over groups is a computation with released rows, unless every key is shown."
            fix = "Leave it out, or write SELECT DISTINCT * FROM (SELECT WITH DIFFERENTIAL_PRIVACY ...)."
            raise refusal(self.draft.select[0].place, rule, fix)

    def _resolve_having(self) -> Expression | None:
        parts: dict[Expression, None] = {}
        for term in self.draft.having:
            expression = check_condition(self._resolve_released(term, "HAVING"), "HAVING", term.place)
            parts |= dict.fromkeys(split_conditions(expression))
        if len(parts) < 2:
            return next(iter(parts), None)
        return make("and", tuple(parts), None)

    def _resolve_sort(self, sort: Sort) -> Order:
        term = sort.term
        if isinstance(term, Ordinal):
            return self._make_order(self._resolve_released(self._find_output(term, "ORDER BY").term, "SELECT"), sort)
        if isinstance(term, Constant):
            raise refusal(term.place, "Ordering by a constant changes nothing.", "Name an output or its number.")
        if isinstance(term, NameTerm) and term.qualifier is None and term.name.lower() in self.outputs_by_name:
            return self._make_order(self.outputs_by_name[term.name.lower()], sort)
        return self._make_order(self._resolve_released(term, "ORDER BY"), sort)

    def _make_order(self, expression: Expression, sort: Sort) -> Order:
        return Order(expression, sort.descending, sort.nulls_first)

    def _resolve_released(self, term: Term, clause: str) -> Expression:
        """The expression of a term over released numbers, which are aggregates and keys."""
        return self._replace_keys(self._resolve_mixed(term, clause), term, clause)

    def _resolve_mixed(self, term: Term, clause: str) -> Expression:
        """The expression of a term in which aggregates are released numbers, and names are still columns or outputs."""

        def special(inner: Term) -> Expression:
            if isinstance(inner, AggregateTerm):
                return self.aggregates.resolve(inner)
            if isinstance(inner, GroupingTerm):
                return self._resolve_grouping(inner)
            raise explain_misplaced(inner, clause)

        return resolve_row(term, lambda name: self._resolve_name(name, clause), clause, special)

    def _resolve_grouping(self, asked: GroupingTerm) -> Expression:
        """The marks of keys as one number: the last key is worth 1, the one before it 2, and so on.

        Privacy: a mark follows from which grouping of the question a row is of. That is public, so marks are free.
        """
        total: Expression = make_literal(0)
        for place, term in enumerate(asked.keys):
            key = self._resolve_row(self._find_key_term(term), "GROUPING")
            if key not in self.keys:
                rule = f"GROUPING names {key}, which is no key of GROUP BY."
                raise refusal(term.place or asked.place, rule, "Name keys as GROUP BY does.")
            if self.sets is None:
                continue
            worth = make_literal(1 << len(asked.keys) - 1 - place)
            mark: Expression = make_grouping_mark(self.keys.index(key), key)
            mark = mark if worth.value == 1 else make("multiply", (mark, worth), asked.place)
            total = mark if total == make_literal(0) else make("add", (total, mark), asked.place)
        return total

    def _resolve_name(self, name: NameTerm, clause: str) -> Expression:
        """A column that the keys read, else an output of this name, else any column, which is refused later."""
        output = self.outputs_by_name.get(name.name.lower()) if name.qualifier is None else None
        found = self.scope.find_matches(name)
        if output is None or (found and clause == "SELECT"):
            return self._find_column(name, clause)
        read = {part for key in self.keys for part in find_columns(key)}
        keyed = [column.expression for column in found if find_columns(column.expression) <= read]
        return keyed[0] if len(keyed) == 1 else output

    def _replace_keys(self, expression: Expression, term: Term, clause: str) -> Expression:
        """The expression, in which every part that equals a key is replaced by that key."""
        for index, key in enumerate(self.keys):
            if expression == key:
                return ReleasedValue(index, str(key), key.type)
        match expression:
            case Column():
                raise self._explain_left_over(expression, term, clause)
            case Call():
                arguments = tuple(self._replace_keys(a, term, clause) for a in expression.arguments)
                return Call(expression.function, arguments, expression.type)
            case Literal() | ReleasedValue():
                return expression
            case _:
                assert_never(expression)

    def _explain_left_over(self, column: Column, term: Term, clause: str) -> UsageError:
        name = next((shown.name for shown in self.scope.columns if shown.expression == column), column.name)
        rule = f"{name!r} in {clause} is neither in GROUP BY nor inside an aggregate."
        example = "AVG" if column.type.is_number else "COUNT"
        fix = f"Add {name} to GROUP BY, or aggregate it, for example {example}({name})."
        return refusal(_place_of_name(term, name) or term.place, rule, fix)


def find_noisy_parts(expression: Expression, keys: int) -> list[bool]:
    """For each released part of an expression, whether it is a noisy number and not a key."""
    match expression:
        case ReleasedValue():
            return [expression.index >= keys]
        case Call():
            return [part for argument in expression.arguments for part in find_noisy_parts(argument, keys)]
        case Column() | Literal():
            return []
        case _:
            assert_never(expression)


def _describe_count(count: int) -> str:
    return "is only one output" if count == 1 else f"are only {count} outputs"


def _place_of_name(term: Term, name: str) -> Place | None:
    """The place of a name in a term, outside of aggregates."""
    match term:
        case NameTerm():
            return term.place if term.name.lower() == name.lower() else None
        case FunctionTerm():
            found = (_place_of_name(argument, name) for argument in term.arguments)
            return next((place for place in found if place is not None), term.place)
        case Constant() | Ordinal() | AggregateTerm() | FeatureTerm() | WindowTerm() | GroupingTerm():
            return None
        case MembershipTerm() | Star():
            return None
        case _:
            assert_never(term)


def _reads_key(expression: Expression) -> bool:
    """Whether an output shows a key, where nothing is measured."""
    return any(isinstance(part, ReleasedValue) for part in walk(expression))
