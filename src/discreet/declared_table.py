"""Tables as analysts see them: declared columns with what is public about them, verbs to ask, and never a row.

``PrivateRows`` has the methods by which people look at rows in other libraries. Here each of them says what to do
instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Self

from discreet.answer import Answer
from discreet.bound_search.curator_protocol import CuratorProtocol
from discreet.call_forms import check_call
from discreet.errors import DiscreetError, UsageError
from discreet.frontends.chain.builder import TableBuilder
from discreet.html_tables import make_facts, make_table
from discreet.late_dataclass import dataclass
from discreet.picture import show, show_key
from discreet.plan import show as plan_words
from discreet.plan.catalog import ColumnFacts, TableFacts
from discreet.plan.relations import Values
from discreet.plan.times import from_days
from discreet.plan.types import Type, Value
from discreet.preview import Preview
from discreet.privacy import Neighbours
from discreet.public_tables import read_public_values

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


@dataclass(frozen=True, kw_only=True, repr=False)
class Table(PrivateRows, TableBuilder):
    """A declared table of a curator: chain ``where``, ``group_by``, ``agg``, then ``preview`` or ``ask``."""

    curator: CuratorProtocol

    @property
    def columns(self) -> list[str]:
        """The names of the declared columns."""
        return list(self.catalog.find_table(self.table).columns)

    def __repr__(self) -> str:
        if self.outputs or self.keys:
            return self._describe_question()
        shown = format_table_facts(self.catalog.find_table(self.table), self.catalog.neighbours)
        chosen = self.conditions or self.source is not None
        return f"{shown}\nonly some of its rows, or joined with others: ask aggregates of them" if chosen else shown

    def _describe_question(self) -> str:
        try:
            words = plan_words.show(self.question)
        except DiscreetError as error:
            return f"no question yet: {error}"
        return f"{words}\nnot asked yet: .preview(share=0.1) is free, .ask(share=0.1) answers"

    def _repr_html_(self) -> str | None:
        if self.outputs or self.keys or self.conditions or self.source is not None:
            return None  # the text above
        return table_to_html(self.catalog.find_table(self.table), self.catalog.neighbours)

    def join(self, other: Any, on: object = None, how: str = "inner", *, name: str = "public") -> Self:
        """As in every chain; besides tables also an answer given before, or a frame, as public rows under a name."""
        rows = other if isinstance(other, TableBuilder | Values) else read_public_values({name: other})[name]
        return super().join(rows, on, how)

    @check_call(".ask(share=0.1)")
    def ask(self, **offer: Any) -> Answer:
        """Answer the question that the chain has become; takes what ``Curator.ask`` takes."""
        return self.curator.ask(self.question, **offer)

    @check_call(".preview(share=0.1)")
    def preview(self, **offer: Any) -> Preview:
        """What the answer would cost and how far off it would be; takes what ``Curator.preview`` takes."""
        return self.curator.preview(self.question, **offer)

    def explain(self, **offer: Any) -> str:
        """The plan, its facts, its sensitivities and its noise, and why."""
        return self.curator.explain(self.question, **offer)


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
