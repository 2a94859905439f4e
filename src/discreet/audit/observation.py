"""All that is seen of one question: what an analyst is told, what is charged, and what the ledger writes down.

Noise hides what is inside of an answer. It does not hide whether there is one, what an error says, what was charged,
which lines the ledger got, or in which order keys come. So all of these must be the same on neighbouring datasets, to
the letter. An ``Observation`` has them with everything random taken out, so that two can be compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from enum import StrEnum
from itertools import pairwise
from typing import Any

from discreet.answer import Answer
from discreet.audit.questions import RecordingEngine
from discreet.curator import Curator
from discreet.engines.engine import key_order
from discreet.errors import DiscreetError
from discreet.frontends import read_sql
from discreet.late_dataclass import dataclass
from discreet.ledger.memory import MemoryLedger
from discreet.plan.catalog import Catalog
from discreet.privacy import Budget

# What is new in every line: the chain's hashes, the ledger's own name, and digests of what is noisy.
_RANDOM = frozenset({"previous", "ledger", "draw", "answer"})
_MORNING = datetime(2024, 1, 1, tzinfo=UTC)


class OutcomeKind(StrEnum):
    """How a question ended."""

    ANSWER = "answer"
    REFUSAL = "refusal"  # before anything was charged
    FAILURE = "failure"  # after that


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What is seen of one question, without what is random.

    ``shown`` is what an answer says beside its numbers, with its keys where they are public. ``order`` says of the
    keys that an engine found whether they came in key order.
    """

    kind: OutcomeKind
    message: str = ""
    charged: str = ""
    lines: tuple[str, ...] = ()
    shown: str = ""
    order: str = ""


def find_tell(first: Observation, second: Observation) -> str:
    """What tells two observations apart, in words; empty if nothing does."""
    for field in fields(Observation):
        one, two = getattr(first, field.name), getattr(second, field.name)
        if one != two:
            return f"{field.name} differs: {_shorten(one)} / {_shorten(two)}"
    return ""


def _shorten(value: object) -> str:
    text = str(value)
    return text if len(text) <= 160 else f"{text[:100]} ... {text[-50:]}"


def observe(
    engine: RecordingEngine, catalog: Catalog, question: str, *, budget: Budget, offer: Mapping[str, Any]
) -> Observation:
    """Ask a question from a fresh ledger, and keep what is seen."""
    ledger = MemoryLedger(budget, unit=catalog.unit, neighbours=catalog.neighbours, clock=lambda: _MORNING)
    curator = Curator(name="audit", catalog=catalog, engine=engine, ledger=ledger)
    engine.seen.clear()
    message, shown = "", ""
    try:
        answer = curator.ask(question, request="audit", **offer)
        kind, shown = OutcomeKind.ANSWER, _describe_answer(answer, _find_public_keys(engine, catalog, question))
    except Exception as error:  # whatever leaves the curator is seen
        kind = OutcomeKind.FAILURE if ledger.history() else OutcomeKind.REFUSAL
        message = describe_error(error)
    return Observation(
        kind=kind,
        message=message,
        charged=f"{ledger.spent} in {len(ledger.history())} charges",
        lines=tuple(_strip_line(line) for line in ledger.read_lines()),
        shown=shown,
        order=_describe_order(engine),
    )


def describe_error(error: BaseException) -> str:
    """An error as its receiver sees it: its kind, its words, and all that hangs on it."""
    chain, found = error, [f"{type(error).__name__}: {error}"]
    while (following := chain.__cause__ or chain.__context__) is not None:
        chain = following
        found.append(f"{type(chain).__name__}: {chain}")
    return " <- ".join(found if isinstance(error, DiscreetError) else ["not an error of ours", *found])


def _find_public_keys(engine: RecordingEngine, catalog: Catalog, text: str) -> list[int]:
    """The columns of an answer whose values are public keys, in an order that noise does not make; else none."""
    question = read_sql.read_with_offer(text, catalog).question
    private = any(bounded.domain is None and bounded.keys for bounded, _ in engine.seen)
    if private or question.having is not None or question.order or question.limit is not None or question.offset:
        return []
    keys = [question.refer_to_key(i) for i in range(len(question.keys))]
    return [i for i, output in enumerate(question.outputs) if output.expression in keys]


def _describe_answer(answer: Answer, keys: Sequence[int]) -> str:
    receipt = {name: value for name, value in answer.receipt.items() if name not in ("time", "ledger")}
    rows = answer.rows
    found = [tuple(row[i].value for i in keys) for row in rows.rows] if keys else []
    columns = list(zip(rows.names, map(str, rows.types), rows.measured))
    return f"{columns} {found} {receipt} {answer.explanation}"


def _describe_order(engine: RecordingEngine) -> str:
    for _, groups in engine.seen:
        order = [key_order(key) for key in groups.keys]
        if any(not first < second for first, second in pairwise(order)):
            return "groups out of key order"
    return "in key order"


def _strip_line(line: str) -> str:
    fields_of_line = json.loads(line)
    return json.dumps({name: value for name, value in fields_of_line.items() if name not in _RANDOM})
