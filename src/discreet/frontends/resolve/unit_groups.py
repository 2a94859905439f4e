"""Resolves GROUP BY inside one unit, which computes features from the rows of each unit (``PerUnit``)."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from discreet.bounding.relation_facts import Owner
from discreet.frontends.resolve import output_names
from discreet.frontends.resolve.calls import check_condition, split_conditions
from discreet.frontends.resolve.computations import make_feature_call, word_of
from discreet.frontends.resolve.foreign_keys import fixes_unit
from discreet.frontends.resolve.rows import explain_misplaced, is_aggregate, resolve_row
from discreet.frontends.resolve.scope import (
    Origin,
    RelationMaker,
    Scope,
    VisibleColumn,
    check_owner,
    find_facts_at,
    find_free_name,
)
from discreet.frontends.resolve.select_outputs import SelectResult, expand_stars, title_of
from discreet.frontends.terms.positions import Place, refusal
from discreet.frontends.terms.syntax import AggregateTerm, Draft, FeatureTerm, Item, NameTerm, Ordinal, Term, parts_of
from discreet.plan.expressions import Call, Column, Expression, Literal, ReleasedValue, find_columns
from discreet.plan.relations import FeatureCall, PerUnit


def resolve_groups(draft: Draft, base: Scope, maker: RelationMaker) -> SelectResult:
    """The outputs of a SELECT with GROUP BY, over one row for each unit and value of the keys."""
    return _GroupingResolver(draft, base, maker).resolve()


class _GroupingResolver:
    """The state while one GROUP BY is resolved: first its keys, then its features in the order in which they occur."""

    def __init__(self, draft: Draft, base: Scope, maker: RelationMaker) -> None:
        self.draft = draft
        self.base = base
        self.maker = maker
        self.items = list(expand_stars(draft, base))
        self.relation = maker.make_name("features")
        self.keys: dict[Expression, Column] = {}
        self.features: dict[FeatureCall, Column] = {}
        self.taken: set[str] = set()
        self.outputs_by_name: dict[str, Expression] = {}

    def resolve(self) -> SelectResult:
        self._read_keys()
        outputs = []
        for item in self.items:
            expression = self._resolve_above(item.term, "SELECT", item.alias)
            name = item.alias or self._name_output(item, expression)
            outputs.append(VisibleColumn("", name, expression, self._find_origin(item)))
            self.outputs_by_name.setdefault(name.lower(), expression)
        having = [c for term in self.draft.having for c in self._resolve_having(term)]
        relation = PerUnit(
            self.base.relation,
            self.relation,
            tuple((column.name, key) for key, column in self.keys.items()),
            tuple((column.name, feature) for feature, column in self.features.items()),
        )
        facts = find_facts_at(relation, self.maker.catalog, self._find_place())
        scope = replace(self.base, relation=relation, facts=facts, columns=tuple(outputs)).keep_where(*having)
        return SelectResult(scope, tuple(outputs), self._find_place())

    def _find_origin(self, item: Item) -> Origin | None:
        """The declared column that a key shows unchanged, so that joins may follow its foreign key."""
        found = self.base.find_matches(item.term) if isinstance(item.term, NameTerm) else ()
        return found[0].origin if len(found) == 1 and found[0].expression in self.keys else None

    def _find_place(self) -> Place | None:
        first = self.draft.group[0] if self.draft.group else self.items[0].term if self.items else None
        return first.place if first is not None else None

    def _name_output(self, item: Item, expression: Expression) -> str:
        if isinstance(expression, Column) and expression.table == self.relation:
            return item.term.name if isinstance(item.term, NameTerm) else expression.name
        return title_of(item, expression)

    # Keys

    def _read_keys(self) -> None:
        if self.draft.sets is not None:
            rule = "ROLLUP, CUBE and GROUPING SETS belong to the outermost SELECT."
            raise refusal(self._find_place(), rule, "Group by plain keys here.")
        if self.draft.group is None:
            terms = [item.term for item in self.items if not any(map(is_aggregate, parts_of(item.term)))]
        else:
            terms = [self._find_key_term(term) for term in self.draft.group]
        for term in terms:
            key = resolve_row(term, self._find, "GROUP BY")
            if not find_columns(key):
                rule = "A key must read a column; this is the same for all rows."
                raise refusal(term.place, rule, "Leave it out.")
            if key not in self.keys:
                self.keys[key] = Column(self.relation, self._make_free_name(self._name_key(key, term)), key.type)
        self._check_unit()

    def _check_unit(self) -> None:
        facts = self.base.facts
        if facts.owner is Owner.NOBODY:
            if not self.keys:
                rule = "An aggregate of a public table inside a question needs GROUP BY."
                raise refusal(self._find_place(), rule, "Write the number itself into the question.")
            return
        if any(key in facts.units for key in self.keys):
            return
        if facts.unit is not None and fixes_unit(self.keys, self.base, self.maker.catalog):
            # The keys say whose rows these are, so the unit as another key makes no more groups.
            self.keys[facts.unit] = Column(self.relation, self._make_free_name("unit"), facts.unit.type)
            return
        check_owner(facts, "GROUP BY", self._find_place())
        unit = self.base.describe_unit() or self.maker.catalog.unit.column
        rule = "GROUP BY inside a question would put rows of different units into one group."
        add = f"Add {unit} to the inner GROUP BY" if self.draft.group else f"Add GROUP BY {unit}"
        fix = (
            f"{add}, or write SELECT WITH DIFFERENTIAL_PRIVACY there: its rows are released, and all around it is free."
        )
        raise refusal(self._find_place(), rule, fix)

    def _find_key_term(self, term: Term) -> Term:
        """The term of a key. The number or the name of an output is replaced by the term of that output."""
        if isinstance(term, Ordinal):
            if not 1 <= term.position <= len(self.items):
                rule = f"GROUP BY {term.position}: there are only {len(self.items)} outputs."
                raise refusal(term.place, rule, "Name a column.")
            return self.items[term.position - 1].term
        if isinstance(term, NameTerm) and term.qualifier is None and not self.base.find_matches(term):
            for item in self.items:
                if item.alias is not None and item.alias.lower() == term.name.lower():
                    return item.term
        return term

    def _name_key(self, key: Expression, term: Term) -> str:
        for item in self.items:
            if item.alias is not None and item.term == term:
                return item.alias
        return output_names.Titles((), (), {}).of(key) or "key"

    def _find(self, name: NameTerm) -> Expression:
        return self.base.find(name).expression

    # Features

    def _resolve_above(self, term: Term, clause: str, alias: str | None = None) -> Expression:
        """The expression of a term over keys and features."""

        def special(inner: Term) -> Expression:
            if not isinstance(inner, AggregateTerm | FeatureTerm) or not is_aggregate(inner):
                raise explain_misplaced(inner, clause)
            return self._make_feature(inner, alias if inner is term else None)

        return self._replace_keys(resolve_row(term, self._find_named, clause, special), term, clause)

    def _find_named(self, name: NameTerm) -> Expression:
        found = self.base.find_matches(name)
        if not found and name.qualifier is None and name.name.lower() in self.outputs_by_name:
            return self.outputs_by_name[name.name.lower()]
        return self._find(name)

    def _make_feature(self, term: AggregateTerm | FeatureTerm, alias: str | None) -> Column:
        call = make_feature_call(term, self._find)
        if call not in self.features:
            name = alias or output_names.join_words(word_of(call), self._title_of(call))
            self.features[call] = Column(self.relation, self._make_free_name(name), call.type)
        return self.features[call]

    def _title_of(self, call: FeatureCall) -> str:
        return "" if call.argument is None else output_names.Titles((), (), {}).of(call.argument)

    def _replace_keys(self, expression: Expression, term: Term, clause: str) -> Expression:
        """The expression, in which every part that equals a key is replaced by that key."""
        if expression in self.keys:
            return self.keys[expression]
        match expression:
            case Column():
                if expression.table == self.relation:
                    return expression
                rule = f"{expression.name!r} in {clause} is neither in GROUP BY nor inside an aggregate."
                fix = f"Add {expression.name} to GROUP BY, or use MIN, MAX, SUM, AVG or COUNT of it."
                raise refusal(term.place, rule, fix)
            case Call():
                arguments = tuple(self._replace_keys(a, term, clause) for a in expression.arguments)
                return Call(expression.function, arguments, expression.type)
            case Literal() | ReleasedValue():
                return expression
            case _:
                assert_never(expression)

    def _resolve_having(self, term: Term) -> tuple[Expression, ...]:
        return split_conditions(check_condition(self._resolve_above(term, "HAVING"), "HAVING", term.place))

    def _make_free_name(self, name: str) -> str:
        free = find_free_name(name, self.taken)
        self.taken.add(free.lower())
        return free
