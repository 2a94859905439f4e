"""What a caller asks, as SQL, as a plan or as a chain of verbs, read as questions and computations.

Texts may read public tables while they are read: for keys, and for subqueries over public rows alone. Private rows are
out of reach here, but for the names and types of their columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from discreet import post_processing
from discreet.engines.engine import Engine
from discreet.engines.registry import read_public_relation
from discreet.errors import ParameterError, UsageError
from discreet.frontends import read_sql
from discreet.frontends.chain.builder import TableBuilder
from discreet.frontends.read_sql import QuestionAndOffer, ReleasedComputation
from discreet.plan.catalog import Catalog
from discreet.plan.nodes import Question
from discreet.plan.relations import Relation, Values, find_tables
from discreet.plan.types import Value
from discreet.public_tables import read_public_values

# The most rows of a public table that are read into memory to compute with them.
MOST_PUBLIC_ROWS = 1_000_000

QuestionLike: TypeAlias = str | Question | TableBuilder
"""A question as SQL, as a plan, or as a chain of verbs."""


class StatementReader:
    """Reads what is asked of a dataset. ``catalog`` is what is declared, with the engine's public rows in reach."""

    def __init__(self, catalog: Catalog, engine: Engine) -> None:
        self._engine = engine
        self.catalog = replace(
            catalog,
            count_public=engine.count_public,
            read_public=self._read_public,
            gaps=engine.capabilities.gaps,
        )

    def read_question(self, asked: QuestionLike, public: Mapping[str, Any] | None = None) -> QuestionAndOffer:
        """One question, and what it offers by itself (the GoogleSQL form does)."""
        if isinstance(asked, str):
            return read_sql.read_with_offer(asked, self.catalog, read_public_values(public), self._compute_public)
        return QuestionAndOffer(asked if isinstance(asked, Question) else asked.question, {})

    def read_batch(self, asked: Sequence[QuestionLike], public: Mapping[str, Any] | None = None) -> list[Question]:
        """The questions of a batch, which state no offers of their own."""
        read = [self.read_question(question, public) for question in asked]
        if any(each.offer for each in read):
            rule = "is said in a question, and a batch has one offer for all of its questions"
            raise ParameterError("cost", rule, "Take it out of the question. Nothing was charged.")
        return [each.question for each in read]

    def read_statement(
        self,
        asked: QuestionLike,
        public: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> QuestionAndOffer | ReleasedComputation:
        """One question, or a computation over released answers and public tables, which only a text can be."""
        if isinstance(asked, str):
            values, compute = read_public_values(public), self._compute_public
            return read_sql.read_statement(asked, self.catalog, values, compute, parameters)
        if parameters:
            raise ParameterError("parameters", "belong to a text", "Leave them out. Nothing was charged.")
        return self.read_question(asked)

    def read_table(self, table: str) -> Values:
        """All rows of a public table, for what is computed in memory."""
        rows = self._engine.count_public(table, ())
        if rows > MOST_PUBLIC_ROWS:
            raise UsageError(
                f"The public table {table!r} has {rows:,} rows, and {MOST_PUBLIC_ROWS:,} can be computed with. "
                "Join it inside of SELECT WITH DIFFERENTIAL_PRIVACY. Nothing was charged."
            )
        return self._engine.read_public(table)

    def _compute_public(self, computation: ReleasedComputation) -> list[list[Value]]:
        """The rows of a computation that reads public tables alone."""
        post_processing.check_computation(computation, self.read_table)
        rows = post_processing.compute(computation, (), self.read_table)
        return [[cell.value for cell in row] for row in rows.rows]

    def _read_public(self, relation: Relation) -> Values | None:
        """The rows of a relation over public tables; None where they are too many."""
        counts = (self._engine.count_public(table, ()) for table in find_tables(relation))
        if any(rows > MOST_PUBLIC_ROWS for rows in counts):
            return None
        return read_public_relation(relation, self.catalog, self._engine.read_public)
