"""Tables as analysts see them: declared columns with what is public about them, and never a row.

``PrivateRows`` has the methods by which people look at rows in other libraries. Here each of them says what to do
instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from discreet.errors import UsageError
from discreet.html_tables import make_facts, make_table
from discreet.picture import show, show_key
from discreet.plan.catalog import ColumnFacts, TableFacts
from discreet.plan.times import from_days
from discreet.plan.types import Type, Value
from discreet.privacy import Neighbours

_HEADS = ("column", "type", "known")
# The most keys that are listed.
_KEYS = 6


class PrivateRows:
    """Refuses to show rows, and says what can be asked."""

    table: str

    def _refuse(self, what: str) -> NoReturn:
        raise UsageError(
            f"{what} of {self.table!r} cannot be shown: a curator tells aggregates and never rows. Ask for example "
            f"curator.table({self.table!r}).agg(n=discreet.count()).preview(share=0.1), then .ask(share=0.1). "
            "Nothing was read or charged."
        )

    def head(self, *_: Any, **__: Any) -> NoReturn:
        """Rows are private: refused, with what to do instead. The same holds for the methods below."""
        self._refuse("Rows")

    tail = sample = show = collect = to_pandas = to_polars = to_arrow = head

    def describe(self, *_: Any, **__: Any) -> NoReturn:
        """Statistics are asked, and paid for, one by one."""
        self._refuse("Statistics")

    def __iter__(self) -> NoReturn:
        self._refuse("Rows")

    def __len__(self) -> NoReturn:  # noqa: PLE0303  # a number of rows is private
        self._refuse("The number of rows")

    def __bool__(self) -> bool:
        return True


def format_table_facts(table: TableFacts, neighbours: Neighbours) -> str:
    """The name of a table, whom it is about, and its columns, as text."""
    rows = [_HEADS, *_list_rows(table)]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows]
    lines.insert(1, "  ".join("─" * width for width in widths))
    return "\n".join([f"{table.name}: {_describe_owner(table, neighbours)}", *lines])


def table_to_html(table: TableFacts, neighbours: Neighbours) -> str:
    """The same as HTML."""
    facts = make_facts([(table.name, _describe_owner(table, neighbours))])
    return f"<div>{facts}{make_table(_HEADS, _list_rows(table), [False] * 3, [False, False, True])}</div>"


def _describe_owner(table: TableFacts, neighbours: Neighbours) -> str:
    if table.public:
        return "public; its rows belong to nobody"
    return f"private: ask aggregates; protects {table.unit} ({neighbours})"


def _list_rows(table: TableFacts) -> list[tuple[str, str, str]]:
    return [(name, str(kind), _describe_facts(kind, facts)) for name, (kind, facts) in table.columns.items()]


def _describe_facts(kind: Type, facts: ColumnFacts) -> str:
    """Bounds, keys and whether values may be missing."""
    words = []
    if facts.low is not None and facts.high is not None:
        words.append(" to ".join(show_key(_to_value(kind, end)) for end in (facts.low, facts.high)))
    if facts.keys is not None and kind is not Type.BOOLEAN:
        words.append(_describe_keys(facts.keys))
    if not facts.nullable:
        words.append("never missing")
    return "; ".join(words)


def _to_value(kind: Type, end: Any) -> Value:
    if kind.is_time:
        return from_days(end, kind)
    return int(end) if end.denominator == 1 else float(end)


def _describe_keys(keys: Sequence[Value]) -> str:
    listed = ", ".join(show_key(key) for key in keys[:_KEYS])
    return f"keys {listed}" if len(keys) <= _KEYS else f"{show(len(keys))} keys: {listed}, …"
