"""How long texts can become: a public bound, in code points, for every text that a question computes.

Why: what an engine needs must not depend on one unit without limit, because a failure, or the time until an answer,
would tell about it. Functions of numbers have results of one size. Texts can grow, so their length is a fact as a range
is: a column has a declared one (``max_length``, and longer values are NULL when they are read), and each function has a
rule below. What could exceed a limit is refused when the question is read, before anything is evaluated.

The claim: a text that is computed from values that keep their columns' lengths has at most as many code points as its
rule says. Proof, by induction over the expression: a literal has its own length; ``concat`` gives its arguments one
after the other; ``lower`` and ``upper`` replace each letter by one; ``trim`` and ``substring`` leave letters out, and
``substring`` from position a gives at most n of the letters from a on; ``case``, ``coalesce`` and ``null_if`` give one
of their arguments or NULL; true and false have at most 5 letters, 64-bit integers at most 20, and days at most 10.
No length is taken from public keys: values outside them are computed before their rows are dropped.

Relations keep the claim: MIN, MAX, LAG and LEAD give values of their argument, a union those of its parts, and every
other node values of its source. Beyond what the rows of its tables may hold themselves, a row of a node holds and
computes at most ``MAX_ROW`` code points of text. Equal expressions of a node are computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, assert_never

from discreet.errors import InternalError, UsageError
from discreet.plan.catalog import MAX_LENGTH, ColumnFacts
from discreet.plan.expressions import Call, Column, Expression, Literal, ReleasedValue
from discreet.plan.relations import (
    Capped,
    Distinct,
    FeatureCall,
    Join,
    JoinKind,
    PerUnit,
    Projection,
    Relation,
    Scan,
    Union,
    Values,
    Where,
    Window,
)
from discreet.plan.types import Type

# The most code points of all texts that one row holds or computes, beyond those of its tables.
MAX_ROW = 16_384

ColumnLengths: TypeAlias = Mapping[Column, ColumnFacts]

LengthRule: TypeAlias = Callable[[Call, Sequence[int]], int]
"""The length of a call from those of its arguments, which are 0 where an argument is no text."""


def length_of_call(call: Call, lengths: Sequence[int]) -> int:
    """The most code points of a call from those of its arguments; 0 if it is no text. Too long a text is refused."""
    if call.type is not Type.TEXT:
        return 0
    rule = LENGTHS.get(call.function)
    if rule is None:
        raise InternalError(f"The function {call.function!r} has no rule for its length.")
    return _check_length(rule(call, lengths), call.function)


def length_of_literal(literal: Literal) -> int:
    """The code points of a constant text; 0 for everything else."""
    return _check_length(len(literal.value), "a constant") if isinstance(literal.value, str) else 0


def length_of_column(column: Column, facts: ColumnFacts) -> int:
    """The most code points of a column of text; 0 for everything else."""
    if column.type is not Type.TEXT:
        return 0
    if facts.max_length is None:
        raise InternalError(f"The text {column.table}.{column.name} has no length.")
    return _check_length(facts.max_length, column.name)


def check_texts(relation: Relation, sources: Sequence[ColumnLengths], stored: int) -> None:
    """Refuse a node whose row would hold and compute too much text. ``sources`` are the columns of its inputs."""
    match relation:
        case Scan() | Distinct() | Union():
            pass  # they compute nothing, and hold no more than what they are made of
        case Values():
            for row in relation.rows:
                for value in row:
                    if isinstance(value, str):
                        _check_length(len(value), f"of {relation.name}")
        case Where():
            check_row(tuple(sources[0]), [relation.condition], sources[0], stored)
        case Capped():
            check_row(tuple(sources[0]), relation.by, sources[0], stored)
        case Projection():
            check_row([expression for _, expression in relation.columns], (), sources[0], stored)
        case Join():
            both = {**sources[0], **sources[1]}
            held = sources[0] if relation.kind in (JoinKind.SEMI, JoinKind.ANTI) else both
            check_row(tuple(held), [side for pair in relation.on for side in pair], both, stored)
        case PerUnit():
            keys = [key for _, key in relation.keys]
            check_row([*keys, *_arguments_of(relation.features)], (), sources[0], stored)
        case Window():
            read = [*relation.parts, *(expression for expression, _ in relation.order)]
            check_row([*sources[0], *_arguments_of(relation.features)], read, sources[0], stored)
        case _:
            assert_never(relation)


def check_row(held: Sequence[Expression], computed: Sequence[Expression], columns: ColumnLengths, stored: int) -> None:
    """Refuse a row that holds and computes too much text.

    ``held`` are the expressions that the new row holds, ``computed`` those that are needed for it and then forgotten.
    ``stored`` is how much the rows of the tables below may hold: these may be read, however wide they are.
    """
    lengths: dict[Call, int] = {}
    total = 0
    for expression in held:
        length = _measure(expression, columns, lengths)
        total += length if isinstance(expression, Column) else 0  # calls are counted below, each once
    for expression in computed:
        _measure(expression, columns, lengths)
    total += sum(lengths.values())
    if total > MAX_ROW + stored:
        raise UsageError(
            f"The texts that this computes for one row may have {total - stored:,} characters together; at most "
            f"{MAX_ROW:,} are allowed. Compute fewer texts, shorten them with substring(x, 1, n), or declare a smaller "
            "max_length for the columns in the codebook. Nothing was charged."
        )


def sum_lengths(columns: ColumnLengths) -> int:
    """The most code points of all texts in a row of some columns."""
    return sum(length_of_column(column, facts) for column, facts in columns.items())


def _arguments_of(features: Sequence[tuple[str, FeatureCall]]) -> list[Expression]:
    """The arguments of features: one with a text has the length of its argument."""
    return [call.argument for _, call in features if call.argument is not None]


def _measure(expression: Expression, columns: ColumnLengths, lengths: dict[Call, int]) -> int:
    """The length of an expression. The lengths of all calls in it are added to ``lengths``, each once."""
    match expression:
        case Column():
            return length_of_column(expression, columns[expression])
        case Literal():
            return length_of_literal(expression)
        case ReleasedValue():
            raise InternalError("A released number stands below the aggregation.")
        case Call():
            if expression not in lengths:
                parts = [_measure(argument, columns, lengths) for argument in expression.arguments]
                lengths[expression] = length_of_call(expression, parts)
            return lengths[expression]
        case _:
            assert_never(expression)


def _check_length(length: int, what: str) -> int:
    if length > MAX_LENGTH:
        raise UsageError(
            f"A text here ({what}) may have {length:,} characters; at most {MAX_LENGTH:,} are allowed, so that the "
            "work for one row does not depend on what it holds. Shorten the parts with substring(x, 1, n), or declare "
            "max_length for the columns in the codebook. Nothing was charged."
        )
    return length


def _add_parts(call: Call, lengths: Sequence[int]) -> int:
    return sum(lengths)


def _keep_first(call: Call, lengths: Sequence[int]) -> int:
    return lengths[0]


def _take_longest(call: Call, lengths: Sequence[int]) -> int:
    return max(lengths)


def _take_longest_result(call: Call, lengths: Sequence[int]) -> int:
    """The longest of the values of CASE, whose arguments are condition, value, ..., otherwise."""
    return max((*lengths[1::2], lengths[-1]))


def _cut(call: Call, lengths: Sequence[int]) -> int:
    """At most ``count`` letters from ``start`` on; none where a constant is NULL or out of range."""
    start, count = (part.value if isinstance(part, Literal) else None for part in call.arguments[1:])
    if not isinstance(start, int) or not isinstance(count, int) or start < 1 or count < 0:
        return 0
    return min(count, max(0, lengths[0] - start + 1))


# The longest texts that values of each type are written as.
_WRITTEN: Mapping[Type, int] = {Type.BOOLEAN: 5, Type.INTEGER: 20, Type.DATE: 10}


def _write_out(call: Call, lengths: Sequence[int]) -> int:
    kind = call.arguments[0].type
    return lengths[0] if kind is Type.TEXT else _WRITTEN[kind]


# One rule for each function that yields a text.
LENGTHS: Mapping[str, LengthRule] = {
    "concat": _add_parts,
    "substring": _cut,
    **dict.fromkeys(("lower", "upper", "trim", "null_if"), _keep_first),
    "case": _take_longest_result,
    "coalesce": _take_longest,
    "to_text": _write_out,
}
