"""Writes a chain as the text of a question, which means the same plan. So a chain can be asked where only text travels.

visits.where(col("age") > 30).group_by("ward").agg(n=count())
SELECT "ward", count(*) AS "n" FROM "visits" WHERE ("age" > 30) GROUP BY "ward"
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from discreet.errors import InternalError
from discreet.frontends.chain.builder import TableBuilder
from discreet.frontends.chain.sql_terms import TermWriter, quote_name
from discreet.frontends.terms.positions import refusal
from discreet.frontends.terms.syntax import (
    Draft,
    Item,
    JoinTerm,
    NameTerm,
    Sort,
    SourceTerm,
    SubqueryTerm,
    TableTerm,
    ValuesTerm,
)


def write_question(chain: TableBuilder) -> str:
    """A chain as SQL. Limits of its own, which plain SQL has no words for, are refused."""
    if chain.limits is not None or chain.least_units is not None:
        raise refusal(
            None,
            "contributing() and with_units() have no words in plain SQL.",
            "Ask in the GoogleSQL form: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed=3) ...",
        )
    return write_select(chain.draft, TermWriter(_find_unit(chain)))


def _find_unit(chain: TableBuilder) -> NameTerm | None:
    """The column of the chain's first table that names the unit."""
    column = chain.catalog.find_table(chain.table).unit_column
    return None if column is None else NameTerm(column.name, chain.called or chain.table)


def write_select(draft: Draft, writer: TermWriter) -> str:
    """A SELECT in terms as SQL, of the kinds that chains make."""
    if draft.distinct or draft.qualify or draft.group is None:
        raise InternalError("A chain has no such clause.")
    parts = [f"SELECT {', '.join(_write_item(item, writer) for item in draft.select)}"]
    parts.append(f"FROM {_write_source(draft.source, writer)}")
    if draft.where:
        parts.append(f"WHERE {writer.write_condition(draft.where)}")
    if draft.sets is not None:
        sets = [writer.write_all([draft.group[place] for place in places]) for places in draft.sets]
        parts.append(f"GROUP BY GROUPING SETS ({', '.join(f'({keys})' for keys in sets)})")
    elif draft.group:
        parts.append(f"GROUP BY {writer.write_all(draft.group)}")
    if draft.having:
        parts.append(f"HAVING {writer.write_condition(draft.having)}")
    if draft.order:
        parts.append(f"ORDER BY {_write_order(draft.order, writer)}")
    if draft.limit is not None:
        parts.append(f"LIMIT {draft.limit}{f' OFFSET {draft.offset}' if draft.offset else ''}")
    return " ".join(parts)


def _write_item(item: Item, writer: TermWriter) -> str:
    return writer.write(item.term) + ("" if item.alias is None else f" AS {quote_name(item.alias)}")


def _write_order(order: Sequence[Sort], writer: TermWriter) -> str:
    return ", ".join(
        f"{writer.write(sort.term)}{' DESC' * sort.descending} NULLS {'FIRST' if sort.nulls_first else 'LAST'}"
        for sort in order
    )


def _write_source(source: SourceTerm, writer: TermWriter) -> str:
    match source:
        case TableTerm():
            return writer.write(source.name) + _write_alias(source.alias)
        case SubqueryTerm():
            if not isinstance(source.query, Draft) or source.columns:
                raise InternalError("A chain has no such subquery.")
            return f"({write_select(source.query, writer)}){_write_alias(source.alias)}"
        case JoinTerm():
            return _write_join(source, writer)
        case ValuesTerm():
            raise InternalError("A chain has no rows of constants.")
        case _:
            assert_never(source)


def _write_alias(alias: str | None) -> str:
    return "" if alias is None else f" AS {quote_name(alias)}"


def _write_join(join: JoinTerm, writer: TermWriter) -> str:
    left, right = _write_source(join.left, writer), _write_source(join.right, writer)
    if join.using is not None:
        return f"{left} {join.kind.upper()} JOIN {right} USING ({writer.write_all(join.using)})"
    if not join.on:
        return f"{left} CROSS JOIN {right}"
    return f"{left} {join.kind.upper()} JOIN {right} ON {writer.write_condition(join.on)}"
