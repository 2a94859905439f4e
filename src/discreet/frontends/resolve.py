"""From terms to a plan: names become columns, types are checked, aggregates are collected, outputs get their names.

The one road for SQL and for the chain, so equal questions give equal plans:

1. conditions on rows, split at AND, in the order they were written, each once
2. keys in the order of GROUP BY, each once
3. outputs, HAVING, ORDER BY: every aggregate in them becomes a released number (equal aggregates are one measurement),
   every part that equals a key becomes that key, and a column that is left over is refused.
"""

from __future__ import annotations

from discreet.errors import UsageError
from discreet.frontends import names
from discreet.frontends.calls import conditions, make, truth
from discreet.frontends.positions import Place, refusal
from discreet.frontends.terms import Apply, Constant, Draft, Item, Measure, Name, Ordinal, Sort, Term, measures_in
from discreet.plan.catalog import Catalog, TableFacts, nearest
from discreet.plan.expressions import Call, Column, Expression, Literal, Released, columns
from discreet.plan.functions import literal
from discreet.plan.nodes import Aggregate, Order, Output, Question, Statistic
from discreet.plan.relations import Filter, Relation, Scan
from discreet.plan.types import Type


def resolve(draft: Draft, catalog: Catalog) -> Question:
    """The question that a draft asks of a catalog's tables."""
    return _Resolver(draft, _table(draft.table, catalog)).question()


def _table(name: Name, catalog: Catalog) -> TableFacts:
    try:
        return catalog.table(name.name)
    except UsageError:
        rule = f"There is no declared table {name.name!r}."
        raise refusal(name.place, rule, nearest(name.name, catalog.tables)) from None


class _Resolver:
    """The state of one resolution: keys first, then aggregates as they are met."""

    def __init__(self, draft: Draft, table: TableFacts) -> None:
        self.draft = draft
        self.table = table
        self.keys: list[Expression] = []
        self.aggregates: list[Aggregate] = []
        self.positions: dict[Aggregate, int] = {}  # of each aggregate in the list
        self.named: dict[str, Expression] = {}  # outputs by name in small letters
        self.samples: dict[Expression, str] = {}  # the names of sample variances and deviations
        self.titles = names.Titles(self.keys, self.aggregates, self.samples)

    def question(self) -> Question:
        source: Relation = Scan(self.table.name)
        for condition in self._conditions():
            source = Filter(source, condition)
        self._read_keys()
        outputs = self._outputs()
        having = self._having()
        order = tuple(self._sort(sort) for sort in self.draft.order)
        if not self.aggregates:
            place = self.draft.select[0].place if self.draft.select else None
            raise refusal(place, "Nothing is measured: there is no aggregate.", "Add one, for example COUNT(*).")
        return Question(
            source=source,
            keys=tuple(self.keys),
            aggregates=tuple(self.aggregates),
            outputs=outputs,
            having=having,
            order=order,
            limit=self.draft.limit,
            offset=self.draft.offset,
        )

    # Rows

    def _conditions(self) -> list[Expression]:
        found: dict[Expression, None] = {}
        for term in self.draft.where:
            expression = truth(self._row(term, "WHERE"), "WHERE", term.place)
            found |= dict.fromkeys(conditions(expression))
        return list(found)

    def _row(self, term: Term, clause: str) -> Expression:
        """A term over one row: no aggregates, names are columns."""
        match term:
            case Name():
                return self._column(term, clause)
            case Constant():
                return literal(term.value)
            case Apply():
                return _call(term, tuple(self._row(a, clause) for a in term.arguments))
            case Measure():
                raise _misplaced(term.place, clause)
            case Ordinal():
                raise refusal(
                    term.place, f"A number in {clause} stands for an output only by itself.", "Name a column."
                )

    def _column(self, name: Name, clause: str) -> Column:
        self._check_qualifier(name)
        if name.name.lower() in {declared.lower() for declared in self.table.columns}:
            return self.table.column(name.name)
        rule = f"The table {self.table.name!r} has no declared column {name.name!r}."
        aliases = {(item.alias or "").lower() for item in self.draft.select}
        if name.name.lower() in aliases:
            rule = f"{name.name!r} is the name of an output, which {clause} cannot use."
            fix = (
                "Repeat its expression."
                if clause != "WHERE"
                else "Repeat its expression, or use HAVING for aggregates."
            )
            raise refusal(name.place, rule, fix)
        raise refusal(name.place, rule, nearest(name.name, self.table.columns))

    def _check_qualifier(self, name: Name) -> None:
        wanted = self.draft.table_alias or self.table.name
        if name.qualifier is not None and name.qualifier.lower() != wanted.lower():
            rule = f"{name.qualifier!r} is not the table of this question."
            raise refusal(name.place, rule, f"Write {wanted}.{name.name} or just {name.name}.")

    # Keys

    def _read_keys(self) -> None:
        if self.draft.group is None:
            terms = [item.term for item in self.draft.select if not self._is_fixed(item.term)]
        else:
            terms = [self._key_term(term) for term in self.draft.group]
        for term in terms:
            key = self._row(term, "GROUP BY")
            place = term.place
            if not columns(key):
                raise refusal(place, "A key must read a column; this is the same for all rows.", "Leave it out.")
            if key == self.table.unit_column:
                rule = f"Grouping by {key} would make a group of every single {key}, and none could be shown."
                raise refusal(place, rule, "Group by something that many share.")
            if key not in self.keys:
                self.keys.append(key)

    def _is_fixed(self, term: Term) -> bool:
        """Whether GROUP BY ALL passes an output over: it has an aggregate, or reads no column."""
        return isinstance(term, Constant) or bool(measures_in(term))

    def _key_term(self, term: Term) -> Term:
        """What a key stands for: ordinals and the names of outputs are replaced by what they name."""
        if isinstance(term, Ordinal):
            return self._output_at(term, "GROUP BY").term
        known = {column.lower() for column in self.table.columns}
        if isinstance(term, Name) and term.qualifier is None and term.name.lower() not in known:
            for item in self.draft.select:
                if item.alias is not None and item.alias.lower() == term.name.lower():
                    if measures_in(item.term):
                        raise _misplaced(term.place, "GROUP BY")
                    return item.term
        return term

    def _output_at(self, ordinal: Ordinal, clause: str) -> Item:
        count = len(self.draft.select)
        if not 1 <= ordinal.position <= count:
            rule = f"{clause} {ordinal.position}: there {_are(count)}."
            raise refusal(ordinal.place, rule, "Use 1, or a name." if count == 1 else f"Use 1 to {count}, or a name.")
        return self.draft.select[ordinal.position - 1]

    # Released numbers

    def _outputs(self) -> tuple[Output, ...]:
        expressions = []
        for item in self.draft.select:
            expression = self._released(item.term, "SELECT")
            expressions.append(expression)
            if item.alias is not None:
                self.named.setdefault(item.alias.lower(), expression)
        measured = [any(columns_of_answer(e, len(self.keys))) for e in expressions]
        plain = [self.titles.of(expression) for expression in expressions]
        titles = names.of_outputs(self.draft.select, plain, measured)
        for title, expression in zip(titles, expressions):
            self.named.setdefault(title.lower(), expression)
        return tuple(Output(title, expression) for title, expression in zip(titles, expressions))

    def _having(self) -> Expression | None:
        parts: dict[Expression, None] = {}
        for term in self.draft.having:
            expression = truth(self._released(term, "HAVING"), "HAVING", term.place)
            parts |= dict.fromkeys(conditions(expression))
        if len(parts) < 2:
            return next(iter(parts), None)
        return make("and", tuple(parts), None)

    def _sort(self, sort: Sort) -> Order:
        term = sort.term
        if isinstance(term, Ordinal):
            return Order(self._released(self._output_at(term, "ORDER BY").term, "SELECT"), sort.descending)
        if isinstance(term, Constant):
            raise refusal(term.place, "Ordering by a constant changes nothing.", "Name an output or its number.")
        if isinstance(term, Name) and term.qualifier is None and term.name.lower() in self.named:
            return Order(self.named[term.name.lower()], sort.descending)
        return Order(self._released(term, "ORDER BY"), sort.descending)

    def _released(self, term: Term, clause: str) -> Expression:
        """A term over released numbers: aggregates and keys only."""
        return self._over_keys(self._mixed(term, clause), term, clause)

    def _mixed(self, term: Term, clause: str) -> Expression:
        """A term whose aggregates are released numbers and whose names are still columns (or named outputs)."""
        match term:
            case Measure():
                return self._measured(term)
            case Apply():
                return _call(term, tuple(self._mixed(a, clause) for a in term.arguments))
            case Name():
                return self._name(term, clause)
            case Constant():
                return literal(term.value)
            case Ordinal():
                raise refusal(term.place, f"A number in {clause} stands for an output only by itself.", "Name it.")

    def _name(self, name: Name, clause: str) -> Expression:
        """A column that the keys read, else a named output, else any column (to be refused with its own reason)."""
        output = self.named.get(name.name.lower()) if name.qualifier is None else None
        if output is None:
            return self._column(name, clause)
        try:
            column = self.table.column(name.name)
        except UsageError:
            return output
        read = {part for key in self.keys for part in columns(key)}
        return column if column in read or clause == "SELECT" else output

    def _over_keys(self, expression: Expression, term: Term, clause: str) -> Expression:
        """The expression with every part that equals a key replaced by that key."""
        for index, key in enumerate(self.keys):
            if expression == key:
                return Released(index, str(key), key.type)
        match expression:
            case Column():
                raise self._left_over(expression, term, clause)
            case Call():
                arguments = tuple(self._over_keys(a, term, clause) for a in expression.arguments)
                return Call(expression.function, arguments, expression.type)
            case _:
                return expression

    def _left_over(self, column: Column, term: Term, clause: str) -> UsageError:
        rule = f"{column.name!r} in {clause} is neither in GROUP BY nor inside an aggregate."
        example = "AVG" if column.type.is_number else "COUNT"
        fix = f"Add {column.name} to GROUP BY, or aggregate it, for example {example}({column.name})."
        return refusal(_place_of_column(term, column), rule, fix)

    # Aggregates

    def _measured(self, measure: Measure) -> Expression:
        if measure.statistic is Statistic.COUNT_UNITS:
            return self._units(measure)
        argument = None if measure.argument is None else self._row(measure.argument, "an aggregate")
        if measure.statistic is Statistic.COUNT:
            if isinstance(argument, Literal) and argument.value is not None:
                argument = None  # COUNT(1) counts rows
            return self._aggregate(Statistic.COUNT, argument)
        argument = _summable(argument, measure)
        released = self._aggregate(measure.statistic, argument)
        return self._sample(released, measure, argument) if measure.sample else released

    def _aggregate(self, statistic: Statistic, argument: Expression | None) -> Released:
        wanted = Aggregate(statistic, argument)
        position = self.positions.setdefault(wanted, len(self.aggregates))
        if position == len(self.aggregates):
            self.aggregates.append(wanted)
        return Released(len(self.keys) + position, str(wanted), wanted.type)

    def _sample(self, released: Released, measure: Measure, argument: Expression) -> Expression:
        """The sample form from the population form and the released count n: times n/(n − 1), its root for stddev."""
        n = self._aggregate(Statistic.COUNT, argument)
        less_one = make("subtract", (n, literal(1)), None)
        factor = make("divide", (n, less_one), None)
        if measure.statistic is Statistic.STDDEV:
            factor = make("sqrt", (factor,), None)
        many = make("greater", (n, literal(1)), None)
        form = make("case", (many, make("multiply", (released, factor), None), literal(None)), None)
        self.samples[form] = self.titles.of_aggregate(measure.statistic, argument)
        return form

    def _units(self, measure: Measure) -> Released:
        unit = self.table.unit_column
        if unit is None:
            rule = f"Each row of {self.table.name!r} is its own unit, so COUNT(DISTINCT ...) is not available."
            raise refusal(measure.place, rule, "COUNT(*) counts the rows.")
        argument = unit if measure.argument is None else self._row(measure.argument, "an aggregate")
        if argument != unit:
            rule = f"COUNT(DISTINCT ...) is available for {unit} only, which says whose row it is."
            raise refusal(measure.place, rule, f"Write COUNT(DISTINCT {unit}), or COUNT(*) with GROUP BY.")
        return self._aggregate(Statistic.COUNT_UNITS, None)


def _call(term: Apply, arguments: tuple[Expression, ...]) -> Expression:
    return make(term.function, arguments, term.place, tuple(argument.place for argument in term.arguments))


def columns_of_answer(expression: Expression, keys: int) -> list[bool]:
    """For each released part: whether it is a noisy number and not a key."""
    match expression:
        case Released():
            return [expression.index >= keys]
        case Call():
            return [part for argument in expression.arguments for part in columns_of_answer(argument, keys)]
        case _:
            return []


def _summable(argument: Expression | None, measure: Measure) -> Expression:
    """The argument of SUM, AVG, VARIANCE and STDDEV: a number, or a condition counted as 1 and 0."""
    word = names.WORDS[measure.statistic].upper()
    if argument is None:
        raise refusal(measure.place, f"{word} needs an argument.", f"Write for example {word}(x).")
    if argument.type is Type.BOOLEAN:
        return make("to_integer", (argument,), measure.place)
    if not argument.type.is_number:
        rule = f"{word} needs numbers; this is of type {argument.type}."
        raise refusal(measure.place, rule, "COUNT takes every type; CAST(x AS DOUBLE) reads a number from a text.")
    return argument


def _misplaced(place: Place | None, clause: str) -> UsageError:
    if clause == "WHERE":
        fix = "WHERE chooses rows before anything is measured; put the condition into HAVING."
        return refusal(place, "WHERE cannot contain an aggregate.", fix)
    if clause == "GROUP BY":
        return refusal(place, "A key cannot contain an aggregate.", "Group by columns or expressions of them.")
    rule = "An aggregate cannot stand inside an aggregate."
    return refusal(place, rule, "Measure each on its own, and combine them outside: SUM(x) / COUNT(*).")


def _are(count: int) -> str:
    return "is only one output" if count == 1 else f"are only {count} outputs"


def _place_of_column(term: Term, column: Column) -> Place | None:
    """Where a column stands in a term, outside of aggregates."""
    match term:
        case Name():
            return term.place if term.name.lower() == column.name.lower() else None
        case Apply():
            found = (_place_of_column(argument, column) for argument in term.arguments)
            return next((place for place in found if place is not None), term.place)
        case _:
            return None
