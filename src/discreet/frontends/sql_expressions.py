"""SQL expressions to terms, by tables: what is not in a table is refused.

Each entry names a class of the parser's tree and the parts of it that are read. A part that is there and not named (a
collation, a time zone, a hint) makes the expression something else, so it is refused, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TypeAlias

from discreet.frontends import constants, sql_refusals
from discreet.frontends.positions import Place, refusal
from discreet.frontends.sql_places import Places
from discreet.frontends.terms import Apply, Constant, Measure, Name, Term, apply
from discreet.plan.catalog import nearest
from discreet.plan.nodes import Statistic

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

    Node: TypeAlias = Expr

TO_THE_END = 1_000_000_000  # characters; more than any text has


class Plain(NamedTuple):
    """A node that is a function of its parts, in this order. ``beside`` are parts without a meaning for us."""

    function: str
    parts: tuple[str, ...]
    beside: tuple[str, ...] = ()


_TWO = ("this", "expression")
_LIST = ("this", "expressions")

# Operators and functions that have the same meaning in a question.
PLAIN: Mapping[str, Plain] = {
    "Add": Plain("add", _TWO),
    "Sub": Plain("subtract", _TWO),
    "Mul": Plain("multiply", _TWO),
    "Div": Plain("divide", _TWO, ("typed", "safe")),
    "Mod": Plain("modulo", _TWO),
    "Pow": Plain("power", _TWO),
    "Abs": Plain("abs", ("this",)),
    "Sign": Plain("sign", ("this",)),
    "Floor": Plain("floor", ("this",)),
    "Ceil": Plain("ceil", ("this",)),
    "Sqrt": Plain("sqrt", ("this",)),
    "Ln": Plain("ln", ("this",)),
    "Exp": Plain("exp", ("this",)),
    "Least": Plain("least", _LIST, ("ignore_nulls",)),
    "Greatest": Plain("greatest", _LIST, ("ignore_nulls",)),
    "EQ": Plain("equal", _TWO),
    "NEQ": Plain("unequal", _TWO),
    "LT": Plain("less", _TWO),
    "LTE": Plain("at_most", _TWO),
    "GT": Plain("greater", _TWO),
    "GTE": Plain("at_least", _TWO),
    "Not": Plain("not", ("this",)),
    "Coalesce": Plain("coalesce", _LIST),
    "Nullif": Plain("null_if", _TWO),
    "Lower": Plain("lower", ("this",)),
    "Upper": Plain("upper", ("this",)),
    "Trim": Plain("trim", ("this",)),
    "Length": Plain("length", ("this",)),
    "StartsWith": Plain("starts_with", _TWO),
    "EndsWith": Plain("ends_with", _TWO),
    "Contains": Plain("contains", _TWO),
}

# Parts of dates: the node is part(word, this).
DATE_PARTS: Mapping[str, str] = {
    "Year": "year",
    "Quarter": "quarter",
    "Month": "month",
    "Week": "week",
    "WeekOfYear": "week",
    "Day": "day",
    "DayOfMonth": "day",
    "DayOfWeek": "dayofweek",
    "Hour": "hour",
    "Minute": "minute",
    "Second": "second",
}
WORDS: Mapping[str, str] = {
    **{f"{word}s": word for word in ("year", "month", "day", "hour", "minute", "second")},
    "dow": "dayofweek",
    "weekday": "dayofweek",
    "weekofyear": "week",
    "dayofmonth": "day",
}

AGGREGATES: Mapping[str, tuple[Statistic, bool]] = {
    "Sum": (Statistic.SUM, False),
    "Avg": (Statistic.MEAN, False),
    "VariancePop": (Statistic.VARIANCE, False),
    "Variance": (Statistic.VARIANCE, True),
    "StddevPop": (Statistic.STDDEV, False),
    "Stddev": (Statistic.STDDEV, True),
    "StddevSamp": (Statistic.STDDEV, True),
}

CASTS: Mapping[str, str] = {
    "BOOLEAN": "to_boolean",
    "INT": "to_integer",
    "BIGINT": "to_integer",
    "FLOAT": "to_real",
    "DOUBLE": "to_real",
    "TEXT": "to_text",
    "VARCHAR": "to_text",
    "DATE": "to_date",
    "TIMESTAMP": "to_timestamp",
    "TIMESTAMPNTZ": "to_timestamp",
}

# Functions that the parser knows by name only, with the number of their arguments.
NAMED: Mapping[str, tuple[str, int]] = {
    "bin": ("bin", 2),
    "clamp": ("clamp", 3),
    "prefix": ("starts_with", 2),
    "suffix": ("ends_with", 2),
}


class Reader:
    """Reads the expressions of one question."""

    def __init__(self, places: Places) -> None:
        self.places = places

    def read(self, node: Node) -> Term:
        """The term that a node means."""
        kind = type(node).__name__
        if kind in PLAIN:
            return self._plain(node, PLAIN[kind])
        if kind in DATE_PARTS:
            self.only(node, "this")
            return self._apply("part", node, Constant(DATE_PARTS[kind]), self.read(node.this))
        if kind in AGGREGATES:
            return self._aggregate(node)
        if kind in SPECIAL:
            special, parts = SPECIAL[kind]
            self.only(node, *parts)
            return special(self, node)
        self.refuse(node)

    def only(self, node: Node, *parts: str) -> None:
        """Refuses a node that has more than these parts."""
        more = [part for part, value in node.args.items() if value and part not in parts]
        if more:
            what = more[0].strip("_").replace("_", " ").upper()
            rule = f"This form of {self._called(node)} is not available (it has {what})."
            raise refusal(self.place(node), rule, "Write the plain form.")

    def refuse(self, node: Node) -> NoReturn:
        """Says why a node is not available."""
        reason = sql_refusals.NODES.get(type(node).__name__)
        if reason is None:
            rule = f"{self._called(node)} is not available in a question."
            raise refusal(self.place(node), rule, "docs/sql.md lists everything that is.")
        raise refusal(self.places.of(node, reason.word), reason.rule, reason.fix)

    def place(self, node: Node) -> Place:
        """Where a node stands."""
        return self.places.of(node)

    def _called(self, node: Node) -> str:
        names = getattr(type(node), "_sql_names", None)
        return str(names[0]) if names else type(node).__name__.upper()

    def _apply(self, function: str, node: Node, *arguments: Term) -> Apply:
        return apply(function, *arguments, place=self.place(node))

    def _plain(self, node: Node, form: Plain) -> Term:
        self.only(node, *form.parts, *form.beside)
        arguments: list[Term] = []
        for part in form.parts:
            value = node.args.get(part)
            nodes = value if isinstance(value, list) else [] if value is None else [value]
            arguments += [self.read(inner) for inner in nodes]
        return self._apply(form.function, node, *arguments)

    # Values

    def _column(self, node: Node) -> Term:
        if type(node.this).__name__ == "Star":
            self.refuse(node.this)
        if type(node.this).__name__ != "Identifier":
            self.refuse(node)
        qualifier = node.args.get("table")
        return Name(node.this.name, qualifier.name if qualifier is not None else None, self.place(node))

    def _literal(self, node: Node) -> Term:
        place = self.place(node)
        value = str(node.this)
        return Constant(
            constants.text(value, place) if node.args.get("is_string") else constants.number(value, place), place
        )

    def _negative(self, node: Node) -> Term:
        inner = node.this
        if type(inner).__name__ == "Literal" and not inner.args.get("is_string"):
            place = self.place(node)
            return Constant(constants.number(str(inner.this), place, negative=True), place)
        return self._apply("negate", node, self.read(inner))

    def _boolean(self, node: Node) -> Term:
        return Constant(bool(node.this), self.place(node))

    def _null(self, node: Node) -> Term:
        return Constant(None, self.place(node))

    def _paren(self, node: Node) -> Term:
        return self.read(node.this)

    # Conditions

    def _chain(self, node: Node) -> Term:
        """AND, OR and ||, however many there are in a row, without going deeper for each."""
        function = {"And": "and", "Or": "or", "DPipe": "concat"}[type(node).__name__]
        return self._apply(function, node, *(self.read(part) for part in chain(node)))

    def _is(self, node: Node) -> Term:
        tested, wanted = self.read(node.this), node.expression
        match type(wanted).__name__:
            case "Null":
                return self._apply("is_null", node, tested)
            case "Boolean":
                truth = tested if wanted.this else self._apply("not", node, tested)
                return self._apply("coalesce", node, truth, Constant(False))
        raise refusal(self.place(node), "IS takes NULL, TRUE or FALSE.", "Use = for other values.")

    def _same(self, node: Node) -> Term:
        """IS NOT DISTINCT FROM: equal, or both NULL."""
        left, right = self.read(node.this), self.read(node.expression)
        both = self._apply("and", node, self._apply("is_null", node, left), self._apply("is_null", node, right))
        return self._apply("coalesce", node, self._apply("equal", node, left, right), both)

    def _different(self, node: Node) -> Term:
        return self._apply("not", node, self._same(node))

    def _between(self, node: Node) -> Term:
        tested = self.read(node.this)
        low = self._apply("at_least", node, tested, self.read(node.args["low"]))
        return self._apply("and", node, low, self._apply("at_most", node, tested, self.read(node.args["high"])))

    def _in(self, node: Node) -> Term:
        members = node.expressions
        if not members:
            raise refusal(self.place(node), "IN needs a list of constants.", "Write for example ward IN ('A', 'B').")
        return self._apply("in", node, self.read(node.this), *(self.read(member) for member in members))

    def _like(self, node: Node) -> Term:
        function = "like" if type(node).__name__ == "Like" else "ilike"
        found = self._apply(function, node, self.read(node.this), self.read(node.expression))
        return self._apply("not", node, found) if node.args.get("negate") else found

    def _case(self, node: Node) -> Term:
        tested = self.read(node.this) if node.this is not None else None
        arguments: list[Term] = []
        for branch in node.args["ifs"]:
            condition = self.read(branch.this)
            if tested is not None:
                condition = self._apply("equal", branch, tested, condition)
            arguments += [condition, self.read(branch.args["true"])]
        otherwise = node.args.get("default")
        return self._apply("case", node, *arguments, self.read(otherwise) if otherwise is not None else Constant(None))

    def _if(self, node: Node) -> Term:
        otherwise = node.args.get("false")
        last: Term = self.read(otherwise) if otherwise is not None else Constant(None)
        return self._apply("case", node, self.read(node.this), self.read(node.args["true"]), last)

    # Numbers, texts, dates

    def _round(self, node: Node) -> Term:
        digits = node.args.get("decimals")
        return self._apply("round", node, self.read(node.this), Constant(0) if digits is None else self.read(digits))

    def _concat(self, node: Node) -> Term:
        """concat() passes NULLs over, unlike ||."""
        texts = [self._apply("coalesce", node, self.read(part), Constant("")) for part in node.expressions]
        return self._apply("concat", node, *texts) if len(texts) > 1 else texts[0]

    def _substring(self, node: Node) -> Term:
        start, count = node.args.get("start"), node.args.get("length")
        first = Constant(1) if start is None else self.read(start)
        length = Constant(TO_THE_END) if count is None else self.read(count)
        return self._apply("substring", node, self.read(node.this), first, length)

    def _left(self, node: Node) -> Term:
        return self._apply("substring", node, self.read(node.this), Constant(1), self.read(node.expression))

    def _extract(self, node: Node) -> Term:
        return self._apply("part", node, self._word(node.this), self.read(node.expression))

    def _trunc(self, node: Node) -> Term:
        return self._apply("date_trunc", node, self._word(node.args["unit"]), self.read(node.this))

    def _date_diff(self, node: Node) -> Term:
        unit = node.args.get("unit")
        if unit is None:
            raise refusal(self.place(node), "date_diff needs a unit.", "Write date_diff('day', a, b).")
        return self._apply("date_diff", node, self._word(unit), self.read(node.expression), self.read(node.this))

    def _word(self, node: Node) -> Constant:
        """The name of a part of a date, bare or as a text."""
        word = str(node.name).lower()
        return Constant(WORDS.get(word, word), self.place(node))

    def _cast(self, node: Node) -> Term:
        target = node.args["to"]
        name = str(getattr(target.this, "name", target.this))
        function = CASTS.get(name) if type(target).__name__ == "DataType" else None
        if function is None or target.expressions or target.args.get("nested"):
            rule = f"CAST to {name} is not available."
            fix = "Available are BOOLEAN, BIGINT, DOUBLE, VARCHAR, DATE and TIMESTAMP."
            raise refusal(self.place(node), rule, fix)
        inner = self.read(node.this)
        if isinstance(inner, Constant) and isinstance(inner.value, str):
            if function == "to_date":
                return Constant(constants.date(inner.value, inner.place), self.place(node))
            if function == "to_timestamp":
                return Constant(constants.moment(inner.value, inner.place), self.place(node))
        return self._apply(function, node, inner)

    def _named(self, node: Node) -> Term:
        """A function that the parser knows by name only."""
        name = str(node.name).lower()
        arguments = node.expressions
        if name in {"date_part", "datepart"} and len(arguments) == 2:
            return self._apply("part", node, self._word(arguments[0]), self.read(arguments[1]))
        if name in WORDS and len(arguments) == 1:
            return self._apply("part", node, Constant(WORDS[name]), self.read(arguments[0]))
        if name == "mean" and len(arguments) == 1:
            return Measure(Statistic.MEAN, self.read(arguments[0]), place=self.place(node))
        known = NAMED.get(name)
        if known is None:
            reason = sql_refusals.FUNCTIONS.get(name)
            rule = reason.rule if reason else f"There is no function {name!r} in a question."
            raise refusal(self.place(node), rule, reason.fix if reason else nearest_function(name))
        function, count = known
        if len(arguments) != count:
            rule = f"{name} takes {count} arguments."
            raise refusal(self.place(node), rule, f"Write {USAGE.get(name, f'{name}(x, y)')}.")
        return self._apply(function, node, *(self.read(argument) for argument in arguments))

    # Aggregates

    def _aggregate(self, node: Node) -> Term:
        self.only(node, "this")
        statistic, sample = AGGREGATES[type(node).__name__]
        return Measure(statistic, self.read(node.this), sample=sample, place=self.place(node))

    def _count(self, node: Node) -> Term:
        place = self.place(node)
        counted = node.this
        match type(counted).__name__:
            case "Star":
                self.only(counted)
                return Measure(Statistic.COUNT, place=place)
            case "NoneType":
                return Measure(Statistic.COUNT, place=place)
            case "Distinct":
                self.only(counted, "expressions")
                if len(counted.expressions) != 1:
                    raise refusal(place, "COUNT(DISTINCT ...) takes one column.", "Name the column of the unit.")
                return Measure(Statistic.COUNT_UNITS, self.read(counted.expressions[0]), place=place)
        return Measure(Statistic.COUNT, self.read(counted), place=place)

    def _count_if(self, node: Node) -> Term:
        counted = self._apply("case", node, self.read(node.this), Constant(1), Constant(None))
        return Measure(Statistic.COUNT, counted, place=self.place(node))

    def _filter(self, node: Node) -> Term:
        """x FILTER (WHERE c): the aggregate of the values for which c is true."""
        inner = self.read(node.this)
        place = self.places.of(node, "FILTER")
        if not isinstance(inner, Measure) or inner.statistic is Statistic.COUNT_UNITS:
            rule = "FILTER is available behind COUNT, SUM, AVG, VARIANCE and STDDEV."
            raise refusal(place, rule, "Use WHERE for the whole question.")
        condition = self.read(node.expression.this)
        value = Constant(1) if inner.argument is None else inner.argument
        chosen = self._apply("case", node, condition, value, Constant(None))
        return Measure(inner.statistic, chosen, inner.sample, inner.place)


Special: TypeAlias = Callable[[Reader, "Node"], Term]

# Nodes that need a look: how they are read, and which of their parts are.
SPECIAL: Mapping[str, tuple[Special, tuple[str, ...]]] = {
    "Column": (Reader._column, ("this", "table")),
    "Literal": (Reader._literal, ("this", "is_string")),
    "Neg": (Reader._negative, ("this",)),
    "Boolean": (Reader._boolean, ("this",)),
    "Null": (Reader._null, ()),
    "Paren": (Reader._paren, ("this",)),
    "And": (Reader._chain, _TWO),
    "Or": (Reader._chain, _TWO),
    "DPipe": (Reader._chain, (*_TWO, "safe")),
    "Is": (Reader._is, _TWO),
    "NullSafeEQ": (Reader._same, _TWO),
    "NullSafeNEQ": (Reader._different, _TWO),
    "Between": (Reader._between, ("this", "low", "high")),
    "In": (Reader._in, _LIST),
    "Like": (Reader._like, (*_TWO, "negate")),
    "ILike": (Reader._like, (*_TWO, "negate")),
    "Case": (Reader._case, ("this", "ifs", "default")),
    "If": (Reader._if, ("this", "true", "false")),
    "Round": (Reader._round, ("this", "decimals")),
    "Concat": (Reader._concat, ("expressions", "safe", "coalesce")),
    "Substring": (Reader._substring, ("this", "start", "length")),
    "Left": (Reader._left, _TWO),
    "Extract": (Reader._extract, _TWO),
    "DateTrunc": (Reader._trunc, ("this", "unit")),
    "TimestampTrunc": (Reader._trunc, ("this", "unit")),
    "DateDiff": (Reader._date_diff, (*_TWO, "unit", "date_part_boundary")),
    "Cast": (Reader._cast, ("this", "to")),
    "TryCast": (Reader._cast, ("this", "to", "safe")),
    "Anonymous": (Reader._named, _LIST),
    "Count": (Reader._count, ("this", "big_int")),
    "CountIf": (Reader._count_if, ("this",)),
    "Filter": (Reader._filter, _TWO),
}

USAGE = {"bin": "bin(age, 10)", "clamp": "clamp(x, 0, 100)"}

# How the functions are written in SQL, for "did you mean" and for the documentation.
SQL_NAMES = (
    "abs", "avg", "bin", "ceil", "clamp", "coalesce", "concat", "contains", "count", "count_if", "date_diff",
    "date_part", "date_trunc", "day", "dayofweek", "ends_with", "exp", "extract", "floor", "greatest", "hour", "if",
    "ifnull", "least", "left", "length", "ln", "lower", "minute", "mod", "month", "nullif", "power", "quarter",
    "round", "second", "sign", "sqrt", "starts_with", "stddev", "stddev_pop", "stddev_samp", "substring", "sum",
    "trim", "upper", "var_pop", "var_samp", "variance", "week", "year",
)  # fmt: skip  # a list of words


def nearest_function(name: str) -> str:
    """A hint at the function that was meant."""
    hint = nearest(name, SQL_NAMES)
    return hint if hint.startswith("Did") else "docs/sql.md lists the functions."


def chain(node: Node) -> Iterator[Node]:
    """The members of a OP b OP c, from left to right, without recursion."""
    waiting = [node]
    while waiting:
        top = waiting.pop()
        inner = top
        while type(inner).__name__ == "Paren":
            inner = inner.this
        if type(inner) is type(node):
            waiting += [inner.expression, inner.this]
        else:
            yield top
