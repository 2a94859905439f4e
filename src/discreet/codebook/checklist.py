"""The checklist: judges the choices of a codebook, from the codebook and the data's schema alone.

A codebook that loads is sound: the guarantee that it states will hold. But the guarantee may be weak, it may protect
the wrong thing, or answers may have more noise than necessary. Each line says what one choice means and what to do.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from fractions import Fraction

from discreet.accounting.account import loss_of
from discreet.accounting.currencies import dearest_event
from discreet.codebook import unit_checks
from discreet.codebook.check_lines import CheckLine, Grade
from discreet.codebook.codebook import Codebook
from discreet.codebook.entries import ColumnEntry, TableEntry, did_you_mean
from discreet.exact import float_up
from discreet.odds import Odds
from discreet.plan.types import Type
from discreet.privacy import Neighbours

Schemas = Mapping[str, Mapping[str, Type | None] | str]
"""For each table the columns that its source has, or the reason why the source could not be opened."""

# Above this ε a 50:50 guess may become better than 99:1.
WEAK_EPSILON = 5
# A limit below so many times the average number of rows of a unit leaves many a unit beyond it, as numbers of rows go.
NARROW = 3
# Pairs of types (in the source, in the codebook) that convert without loss.
_FITS = {(Type.INTEGER, Type.REAL), (Type.DATE, Type.TIMESTAMP), (Type.TIMESTAMP, Type.DATE)}
_FITS |= {(kind, Type.TEXT) for kind in (Type.INTEGER, Type.BOOLEAN, Type.DATE)}


def make_checklist(codebook: Codebook, schemas: Schemas | None = None) -> tuple[CheckLine, ...]:
    """One line for each choice of a codebook. With ``schemas``, lines also compare it with the data."""
    lines = [*unit_checks.check_unit(codebook), *_check_neighbours(codebook), *_check_budget(codebook)]
    for name, table in codebook.document.tables.items():
        if schemas is not None:
            lines += _check_schema(name, table, schemas[name], untyped=name in _find_untyped(codebook))
        lines += unit_checks.check_table(name, codebook)
        if not table.public:
            lines += _check_contributions(name, table, codebook)
        lines += _check_bounds(name, table, codebook)
        lines += _check_keys(name, table, codebook)
    return tuple(lines)


def _check_neighbours(codebook: Codebook) -> Iterator[CheckLine]:
    who = "a row" if codebook.unit.column is None else f"a {codebook.unit.column}"
    if codebook.neighbours is Neighbours.ADD_REMOVE:
        yield CheckLine(Grade.GOOD, "neighbours", f"add-remove: nobody learns whether {who} is in the data.")
        return
    finding = f"replace: values are hidden, the presence of {who} is not; noise is up to twice as large."
    yield CheckLine(
        Grade.WEAK, "neighbours", finding, 'Use "add-remove" unless the number of units is fixed and public.'
    )


def _check_budget(codebook: Codebook) -> Iterator[CheckLine]:
    budget = codebook.budget
    odds = find_worst_odds(codebook)
    words = f"{budget.symbol} {float_up(budget.amount()):g} in all. {odds.sentence()}"
    weak = odds.epsilon > WEAK_EPSILON
    fix = "That protects little: aim for ε 3 or less, ρ 0.1 or less." if weak else ""
    yield CheckLine(Grade.WEAK if weak else Grade.GOOD, "budget", words, fix)
    yield from _check_delta(codebook)
    if codebook.per_query is None:
        finding = "one question may spend all of it."
        yield CheckLine(Grade.WEAK, "per query", finding, "Add per_query to [budget] if analysts should not.")
    else:
        yield CheckLine(Grade.GOOD, "per query", f"one question may spend {float_up(codebook.per_query):g}.")


def find_worst_odds(codebook: Codebook) -> Odds:
    """What the whole budget means for one unit.

    Under an (ε, δ) budget the loss may exceed ε a little with a probability a little above δ. Ten times δ is a round
    probability at which the odds are still close to those of ε (``odds.tail_epsilon``).
    """
    budget = codebook.budget
    dearest = dearest_event(budget, unit=codebook.unit, neighbours=codebook.neighbours)
    return loss_of(dearest).odds(min(10 * budget.slack(), Fraction(1, 2)))


def _check_delta(codebook: Codebook) -> Iterator[CheckLine]:
    """Whether δ is far below one over the number of units. Publishing one unit in n at random has δ = 1/n."""
    delta = codebook.budget.slack()
    private = [
        f"{name}.{column}"
        for name, table in codebook.document.tables.items()
        for column, entry in table.columns.items()
        if not table.public and column not in unit_checks.keys_of(name, codebook) and _lacks_keys(entry)
    ]
    if not delta:
        if codebook.budget.notion == "pure" and private:
            finding = f"none: groups by {private[0]} and others without public keys are refused."
            yield CheckLine(Grade.WEAK, "delta", finding, "List their keys, or add delta = 1e-9 to [budget].")
        return
    shown = f"{float_up(delta):.2g}"
    sizes = [size for name in codebook.document.tables if (size := codebook.size(name)[1]) is not None]
    if not sizes:
        fix = "Declare units (or rows) of a table, so that it can be compared."
        yield CheckLine(Grade.WEAK, "delta", f"{shown}, and the number of units is not declared.", fix)
    elif delta * max(sizes) >= 1:
        finding = f"{shown} would allow publishing whole people: it is not below 1/{max(sizes):,}."
        yield CheckLine(Grade.WRONG, "delta", finding, f"Write delta = {_round_below(max(sizes))} or less.")
    elif delta * max(sizes) * 10 > 1:
        finding = f"{shown} is close to 1/{max(sizes):,}, one in the number of units."
        yield CheckLine(Grade.WEAK, "delta", finding, f"Write delta = {_round_below(max(sizes))} or less.")
    else:
        yield CheckLine(Grade.GOOD, "delta", f"{shown}, well below one in {max(sizes):,} units.")


def _find_untyped(codebook: Codebook) -> set[str]:
    """The tables whose source has no types. There any declared type is right."""
    return {name for name, source in codebook.sources.items() if source.kind == "csv"}


def _check_schema(
    name: str, table: TableEntry, schema: Mapping[str, Type | None] | str, *, untyped: bool
) -> Iterator[CheckLine]:
    """Whether the data has the declared columns, in types that fit."""
    if isinstance(schema, str):
        yield CheckLine(
            Grade.WRONG, f"{name}", f"the data cannot be opened: {schema}", "Paths are relative to the codebook."
        )
        return
    names = {column.lower(): column for column in schema}
    wrong = False
    for column, entry in table.columns.items():
        real = names.get(column.lower())
        where = f"{name}.{column}"
        if real is None:
            wrong = True
            yield CheckLine(Grade.WRONG, where, "is not in the data.", did_you_mean(column, schema))
        elif (there := schema[real]) is None:
            wrong = True
            yield CheckLine(
                Grade.WRONG, where, "is of a kind that questions cannot use.", "Remove it, or convert the data."
            )
        elif not untyped and there != Type(entry.type) and (there, Type(entry.type)) not in _FITS:
            lossy = there is Type.TEXT or (there, Type(entry.type)) == (Type.REAL, Type.INTEGER)
            wrong = wrong or not lossy
            finding = f"is {there} in the data and {entry.type} here; what does not convert becomes NULL."
            yield CheckLine(
                Grade.WEAK if lossy else Grade.WRONG, where, finding, f'Write type = "{there}" if that is right.'
            )
    kinds = {Type(entry.type) for entry in table.columns.values()}
    if untyped and not wrong and kinds == {Type.TEXT} and len(table.columns) > 1 and not table.public:
        fix = "Mend the types in the codebook, or let the values be read: discreet init DATA --types"
        yield CheckLine(Grade.WEAK, f"{name}: types", "all columns are text, so nothing can be summed.", fix)
    if not wrong:
        hidden = len(schema) - len(table.columns)
        also = f"; {hidden} more in the data stay hidden" if hidden > 0 else ""
        yield CheckLine(Grade.GOOD, name, f"the data has all {len(table.columns)} declared columns{also}.")


def _check_contributions(name: str, table: TableEntry, codebook: Codebook) -> Iterator[CheckLine]:
    unit = codebook.unit.column
    if unit is None:
        return
    rows, units = codebook.size(name)
    if table.max_rows is not None:
        limit, words = table.max_rows, f"at most {_format_rows(table.max_rows)} of one {unit} count in full."
    else:
        groups, each = table.max_groups or 1, table.max_rows_per_group or 1
        limit = groups * each
        words = f"one {unit} counts in full in at most {groups} groups, with at most {_format_rows(each)} in each."
    topic = f"{name}: rows"
    if rows is not None and units is not None and limit * units < rows:
        lost = f"With {rows:,} rows of {units:,} units, some rows lie beyond that; no interval covers them."
        yield CheckLine(
            Grade.WEAK, topic, f"{words} {lost}", f"Allow more, or buy a good limit: {_write_command(name)}"
        )
    elif rows is not None and units is not None and limit > 20 * rows / units:
        mean = rows / units
        finding = f"{words} The average is {mean:.3g}, so noise is {limit / mean:.0f} times what most need."
        yield CheckLine(Grade.WEAK, topic, finding, f"Allow fewer, or buy a good limit: {_write_command(name)}")
    elif rows is not None and units is not None and 1 < limit < NARROW * rows / units:
        finding = f"{words} The average is {rows / units:.3g}, and what some have beyond the limit no interval covers."
        yield CheckLine(Grade.WEAK, topic, finding, f"Allow more, or buy a good limit: {_write_command(name)}")
    else:
        yield CheckLine(Grade.GOOD, topic, words)


def _write_command(*names: str) -> str:
    """The command that buys limits of a table or bounds of a column; whoever shows it puts the codebook's path in."""
    return " ".join(["discreet bounds CODEBOOK", *map(shlex.quote, names)])


def _check_bounds(name: str, table: TableEntry, codebook: Codebook) -> Iterator[CheckLine]:
    excluded = unit_checks.keys_of(name, codebook)  # nobody sums the names of units
    columns = {column: entry for column, entry in table.columns.items() if column not in excluded}
    numbers = {column: entry for column, entry in columns.items() if Type(entry.type).is_number}
    missing = [column for column, entry in numbers.items() if entry.bounds is None and not _names_things(column)]
    if missing:
        finding = f"{_join_names(missing)} without bounds can be counted, not summed or averaged."
        fix = "Add bounds = [low, high] from public knowledge"
        fix += "." if table.public else f", or buy them: {_write_command(name, missing[0])}"
        yield CheckLine(Grade.WEAK, f"{name}: bounds", finding, fix)
    for column, entry in numbers.items():
        if entry.bounds is not None and entry.bounds[0] == entry.bounds[1]:
            yield CheckLine(Grade.WEAK, f"{name}.{column}", "has bounds that allow one value only.", "Widen them.")
    stepless = [
        column
        for column, entry in numbers.items()
        if entry.bounds is not None and entry.bounds[0] < entry.bounds[1]
        and entry.type == Type.REAL and entry.resolution is None
    ]  # fmt: skip
    if stepless:
        finding = f"{_join_names(stepless)} without resolution: sums in steps of about a millionth of the bounds."
        fix = "Add the step of the values, such as resolution = 0.01."
        yield CheckLine(Grade.WEAK, f"{name}: resolution", finding, fix)
    known = [column for column, entry in numbers.items() if entry.bounds is not None]
    if known and not missing:
        yield CheckLine(Grade.GOOD, f"{name}: bounds", f"{_join_names(known)} can be summed and averaged.")


def _check_keys(name: str, table: TableEntry, codebook: Codebook) -> Iterator[CheckLine]:
    excluded = unit_checks.keys_of(name, codebook)
    columns = {column: entry for column, entry in table.columns.items() if column not in excluded}
    public = [column for column, entry in columns.items() if not _lacks_keys(entry, numbers=True)]
    if public:
        yield CheckLine(Grade.GOOD, f"{name}: keys", f"groups by {_join_names(public)} are public and always appear.")
    private = [column for column, entry in columns.items() if _lacks_keys(entry)]
    if private:
        finding = f"groups by {_join_names(private)} come from the data: rare ones stay unnamed."
        yield CheckLine(Grade.GOOD, f"{name}: keys", finding)
    without_null = [
        c for c, entry in columns.items() if entry.keys is not None and entry.nullable and not entry.null_key
    ]
    if without_null:
        finding = f"rows where {_join_names(without_null)} is NULL are in no group."
        fix = "Add null_key = true to count them, or nullable = false where there are none."
        yield CheckLine(Grade.WEAK, f"{name}: keys", finding, fix)


def _lacks_keys(entry: ColumnEntry, *, numbers: bool = False) -> bool:
    """Whether groups by a column need private selection. Numbers are left out, because they are grouped in bins."""
    kind = Type(entry.type)
    if kind is Type.BOOLEAN or entry.keys is not None or entry.bins is not None:
        return False
    return numbers or not kind.is_number


def _names_things(column: str) -> bool:
    """Whether a column of numbers looks like a name or a code, of which nobody takes sums."""
    return column.lower() == "id" or column.lower().endswith(("_id", "id_", "_no", "_nr", "code"))


def _join_names(names: list[str]) -> str:
    shown = ", ".join(names[:4])
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more"


def _format_rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _round_below(size: int) -> str:
    """A round number that is well below one over a size."""
    return f"1e-{len(str(size)) + 2}"
