"""Resolves window functions inside one unit, such as the first visit or a running sum (``Window``)."""

from __future__ import annotations

from dataclasses import replace

from discreet.bounding.relation_facts import Owner
from discreet.frontends.resolve import output_names
from discreet.frontends.resolve.calls import check_condition, split_conditions
from discreet.frontends.resolve.computations import make_feature_call, word_of
from discreet.frontends.resolve.foreign_keys import fixes_unit
from discreet.frontends.resolve.rows import explain_misplaced, resolve_row
from discreet.frontends.resolve.scope import (
    RelationMaker,
    Scope,
    VisibleColumn,
    check_owner,
    find_facts_at,
    find_free_name,
)
from discreet.frontends.resolve.select_outputs import SelectResult, expand_stars, title_of
from discreet.frontends.terms.positions import refusal
from discreet.frontends.terms.syntax import Draft, Item, NameTerm, Term, WindowTerm
from discreet.plan.expressions import Column, Expression
from discreet.plan.relations import WINDOW_FEATURES, Feature, FeatureCall, Window

# The features that can be computed over the rows of a part.
OVER = WINDOW_FEATURES | {Feature.COUNT, Feature.SUM, Feature.MEAN, Feature.MIN, Feature.MAX}
Division = tuple[tuple[Expression, ...], tuple[tuple[Expression, bool], ...]]


def resolve_rows(draft: Draft, base: Scope, maker: RelationMaker) -> SelectResult:
    """The outputs of a SELECT without GROUP BY, over the same rows and the windows that it uses."""
    return _WindowResolver(draft, base, maker).resolve()


class _WindowResolver:
    """The state while one SELECT is resolved: its windows in the order in which they occur, equal ones once."""

    def __init__(self, draft: Draft, base: Scope, maker: RelationMaker) -> None:
        self.draft = draft
        self.base = base
        self.maker = maker
        self.divisions: dict[Division, str] = {}
        self.computed: dict[tuple[Division, FeatureCall], Column] = {}
        self.outputs_by_name: dict[str, Expression] = {}

    def resolve(self) -> SelectResult:
        outputs = [self._resolve_output(item) for item in expand_stars(self.draft, self.base)]
        for output in outputs:
            self.outputs_by_name.setdefault(output.name.lower(), output.expression)
        conditions = [c for term in self.draft.qualify for c in self._qualify(term)]
        scope = self.base
        for division, name in self.divisions.items():
            found = tuple((column.name, c) for (d, c), column in self.computed.items() if d == division)
            relation = Window(scope.relation, name, *division, found)
            scope = replace(scope, relation=relation, facts=find_facts_at(relation, self.maker.catalog, None))
        place = self.draft.select[0].place if self.draft.select else None
        return SelectResult(scope.keep_where(*conditions), tuple(outputs), place)

    def _resolve_output(self, item: Item) -> VisibleColumn:
        if isinstance(item.term, NameTerm):
            found = self.base.find(item.term)
            return VisibleColumn("", item.alias or found.name, found.expression, found.origin)
        expression = resolve_row(item.term, self._find, "SELECT", lambda term: self._resolve_window(term, item))
        name = expression.name if isinstance(expression, Column) and not item.alias else title_of(item, expression)
        return VisibleColumn("", name, expression)

    def _find(self, name: NameTerm) -> Expression:
        return self.base.find(name).expression

    def _qualify(self, term: Term) -> tuple[Expression, ...]:
        def find(name: NameTerm) -> Expression:
            if (
                not self.base.find_matches(name)
                and name.qualifier is None
                and name.name.lower() in self.outputs_by_name
            ):
                return self.outputs_by_name[name.name.lower()]
            return self._find(name)

        expression = resolve_row(term, find, "QUALIFY", lambda inner: self._resolve_window(inner, None))
        return split_conditions(check_condition(expression, "QUALIFY", term.place))

    def _resolve_window(self, term: Term, item: Item | None) -> Column:
        if not isinstance(term, WindowTerm):
            raise explain_misplaced(term, "SELECT")
        parts = tuple(dict.fromkeys(resolve_row(part, self._find, "PARTITION BY") for part in term.parts))
        order = tuple((resolve_row(sort.term, self._find, "ORDER BY"), sort.descending) for sort in term.order)
        parts = self._add_unit(parts, term)
        call = make_feature_call(term.function, self._find)
        if call.feature not in OVER:
            rule = f"{word_of(call).upper()} is not available with OVER."
            raise refusal(term.place, rule, "Compute it in a subquery with GROUP BY, and join that.")
        if term.frame is not None:
            call = _add_frame(call, term)
        division: Division = (parts, order)
        if division not in self.divisions:
            self.divisions[division] = self.maker.make_name("window")
        if (division, call) not in self.computed:
            relation = self.divisions[division]
            alias = item.alias if item is not None and item.term is term else None
            name = self._make_free_name(relation, alias or _title_of(call))
            self.computed[division, call] = Column(relation, name, call.type)
        return self.computed[division, call]

    def _add_unit(self, parts: tuple[Expression, ...], term: WindowTerm) -> tuple[Expression, ...]:
        """The parts of a window, with the unit beside columns that say whose rows these are."""
        facts = self.base.facts
        if facts.owner is Owner.NOBODY or any(part in facts.units for part in parts):
            return parts
        if facts.unit is not None and fixes_unit(parts, self.base, self.maker.catalog):
            return (*parts, facts.unit)
        check_owner(facts, "A window", term.place)
        unit = self.base.describe_unit() or self.maker.catalog.unit.column
        rule = "This window would look at rows of different units."
        raise refusal(term.place, rule, f"Add {unit} to PARTITION BY.")

    def _make_free_name(self, relation: str, name: str) -> str:
        taken = {column.name.lower() for column in self.computed.values() if column.table == relation}
        return find_free_name(name, taken)


def _title_of(call: FeatureCall) -> str:
    inside = "" if call.argument is None else output_names.Titles((), (), {}).of(call.argument)
    return output_names.join_words(word_of(call), inside)


def _add_frame(call: FeatureCall, term: WindowTerm) -> FeatureCall:
    """A feature over some rows around each row. The order decides which these are, so there must be one."""
    if call.feature in WINDOW_FEATURES:
        rule = f"{word_of(call).upper()} takes no frame."
        raise refusal(term.place, rule, "Leave ROWS BETWEEN out.")
    if not term.order:
        rule = "A frame needs ORDER BY: without it, which rows stand around a row is not said."
        raise refusal(term.place, rule, "Add ORDER BY to the window.")
    return replace(call, frame=term.frame)
