"""Computations over released answers: what stands outside of SELECT WITH DIFFERENTIAL_PRIVACY, checked and computed.

Before anything is charged, the computation is run once over empty tables, which finds every wrong name and type, and
its work is bounded by the numbers of rows that are public. After the questions are answered it is run over their rows.
Nothing private is in reach in either step (``frontends.outer.computation`` says why it costs nothing).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from discreet.accounting import cost_words
from discreet.accounting.pure import PureNotion
from discreet.answer import Answer
from discreet.answer_rows import Rows, make_column
from discreet.bounding.bound import bound_all
from discreet.engines.registry import compute_rows
from discreet.errors import QuestionError, Unbounded, UsageError
from discreet.exact import decimal
from discreet.frontends.outer.computation import (
    OuterColumn,
    ReleasedComputation,
    name_brought,
    name_public,
    name_released,
)
from discreet.frontends.outer.row_counts import MAX_ROWS, count_rows
from discreet.plan.catalog import Catalog
from discreet.plan.nodes import Question
from discreet.plan.relations import Values
from discreet.plan.types import NamedColumn, Type
from discreet.privacy import Budget, Loss, Neighbours, Unit

PublicReader: TypeAlias = Callable[[str], Values]
"""Gives the rows of a declared public table."""

_ENDS = ("low", "high")


def check_computation(
    computation: ReleasedComputation, read_public: PublicReader, sizes: Sequence[int | None] = ()
) -> tuple[tuple[OuterColumn, Type], ...]:
    """Refuse, before anything is charged, what cannot be computed: wrong names or types, or too much work.

    Gives the columns of the answer with their types. ``sizes`` are the numbers of groups of each question, where they
    are public; None where they come from the data.
    """
    public = _list_public(computation, read_public)
    known = {name_released(i): size for i, size in enumerate(sizes) if size is not None}
    rows = count_rows(computation.rules, {**_count(public), **known})
    if rows > MAX_ROWS:
        raise QuestionError(_describe_work(), "Join on equal keys, or ask for fewer groups.")
    empty: dict[str, list[NamedColumn]] = {
        name: [(title, kind, ()) for title, kind, _ in columns] for name, columns in public.items()
    }
    for i, asked in enumerate(computation.questions):
        empty[name_released(i)] = _list_outputs(asked.question)
    try:
        found = compute_rows(empty, computation.sql)
    except UsageError as error:
        raise QuestionError(f"The computation cannot be done: {error}", "Mend what stands outside.") from None
    shown = _list_shown(computation.columns, found)
    return tuple((column, kind) for column, (_, kind, _) in zip(shown, found))


def compute(computation: ReleasedComputation, answers: Sequence[Answer], read_public: PublicReader) -> Rows:
    """The rows of a computation over the answers of its questions."""
    tables = _list_public(computation, read_public)
    for i, answer in enumerate(answers):
        tables[name_released(i)] = _list_released(answer, computation.questions[i].question)
    paid = " The questions inside are answered and on record: each by itself is free."
    if count_rows(computation.rules, _count(tables)) > MAX_ROWS:
        raise UsageError(f"{_describe_work()} Join on equal keys, or ask for fewer groups.{paid if answers else ''}")
    try:
        found = compute_rows(tables, computation.sql)
    except UsageError as error:
        raise UsageError(f"The computation failed: {error}.{paid if answers else ''}") from None
    return _make_rows(computation.columns, found, answers)


def _describe_work() -> str:
    return f"The computation would look at more than {MAX_ROWS:,} rows."


def _count(tables: Mapping[str, Sequence[NamedColumn]]) -> dict[str, int]:
    return {name: max((len(values) for _, _, values in columns), default=0) for name, columns in tables.items()}


def _list_public(computation: ReleasedComputation, read_public: PublicReader) -> dict[str, Sequence[NamedColumn]]:
    named = {name_public(i): read_public(table) for i, table in enumerate(computation.tables)}
    named |= {name_brought(i): values for i, values in enumerate(computation.brought)}
    return {
        name: [(title, kind, [row[i] for row in values.rows]) for i, (title, kind) in enumerate(values.columns)]
        for name, values in named.items()
    }


def _list_outputs(question: Question) -> list[NamedColumn]:
    """The columns that a released question will have, without rows. Numbers and times have the ends of an interval."""
    found: list[NamedColumn] = []
    for output in question.outputs:
        kind = output.expression.type
        found.append((output.name, kind, ()))
        found += [(f"{output.name}_{end}", kind, ()) for end in _ENDS if kind.has_ends]
    return found


def _list_released(answer: Answer, question: Question) -> list[NamedColumn]:
    rows, found = answer.rows, list[NamedColumn]()
    for at, output in enumerate(question.outputs):
        kind = output.expression.type
        column = rows.columns[at]
        found.append((output.name, kind, column.values))
        if kind.has_ends:
            found += [(f"{output.name}_{end}", kind, values) for end, values in zip(_ENDS, column.ends)]
    return found


def _list_shown(columns: Sequence[OuterColumn] | None, found: Sequence[NamedColumn]) -> list[OuterColumn]:
    """The columns of an answer. Those that follow in the rows are the ends of their intervals."""
    return [OuterColumn(name) for name, _, _ in found] if columns is None else list(columns)


def _make_rows(columns: Sequence[OuterColumn] | None, found: Sequence[NamedColumn], answers: Sequence[Answer]) -> Rows:
    """The rows of an answer, with the ends of intervals put back beside their columns."""
    shown = _list_shown(columns, found)
    ended = [at for at, column in enumerate(shown) if column.origins]
    ends = {at: (len(shown) + 2 * i, len(shown) + 2 * i + 1) for i, at in enumerate(ended)}
    measured = tuple(any(answers[i].rows.measured[place] for i, place in column.origins) for column in shown)
    made = (make_column(found[at][2], *(found[end][2] for end in ends.get(at, ()))) for at in range(len(shown)))
    names, kinds = tuple(column.name for column in shown), tuple(found[at][1] for at in range(len(shown)))
    return Rows(names, kinds, measured, tuple(made))


def count_groups(question: Question, catalog: Catalog) -> int | None:
    """How many rows the answer of a question has at most, where that is public; None where data names its groups."""
    try:
        domains = [form.bounded.domain if form.bounded.keys else ((),) for form in bound_all(question, catalog)]
    except Unbounded:  # bounds that are missing may be bought, and do not change the groups
        return None
    if any(domain is None for domain in domains):
        return None
    count = sum(len(domain or ()) for domain in domains)
    return count if question.limit is None else min(count, question.limit)


# Answers


def combine_answers(
    computation: ReleasedComputation, answers: Sequence[Answer], rows: Rows, budget: Budget, spent: Loss
) -> Answer:
    """The answer of a computation under the receipts of its questions; ``spent`` is what they cost together."""
    receipts = [answer.receipt for answer in answers]
    lists = {key: _merge(receipts, key) for key in ("limits", "clamped", "chosen")}
    receipt = {
        **receipts[0],
        "question": computation.text,
        "cost": cost_words.describe_cost(budget, spent),
        "loss": budget.loss_to_dict(spent),
        "mechanisms": [event for receipt in receipts for event in receipt["mechanisms"]],
        **{key: lines for key, lines in lists.items() if lines or key in receipts[0]},
        "released": [{key: receipt[key] for key in ("question", "cost", "ledger")} for receipt in receipts],
    }
    words = [f"released{i}:\n{answer.explanation}" for i, answer in enumerate(answers)]
    return Answer(
        rows=rows,
        spent=spent,
        remaining=answers[-1].remaining,
        receipt=receipt,
        explanation="\n\n".join([*words, explain_rest(computation)]),
        replayed=all(answer.replayed for answer in answers),
    )


def explain_rest(computation: ReleasedComputation) -> str:
    """Why the rest of a statement costs nothing."""
    return f"The rest reads released and public rows alone, so it is free:\n{computation.sql}"


def answer_exactly(
    computation: ReleasedComputation,
    rows: Rows,
    *,
    unit: Unit,
    neighbours: Neighbours,
    remaining: str,
    receipt: Mapping[str, Any],
) -> Answer:
    """The answer of a computation that reads public tables alone."""
    return Answer(
        rows=rows,
        spent=Loss((PureNotion(decimal(0)),), unit, neighbours),
        remaining=remaining,
        receipt={
            **receipt,
            "protects": "nobody: only public tables are read",
            "cost": "nothing",
            "mechanisms": [],
            "question": computation.text,
            "limits": [],
            "clamped": [],
        },
        explanation=explain_rest(computation),
    )


def _merge(receipts: Sequence[Mapping[str, Any]], key: str) -> list[str]:
    return list(dict.fromkeys(line for receipt in receipts for line in receipt.get(key, ())))
