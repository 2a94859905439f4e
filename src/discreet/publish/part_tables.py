"""What a bundle has of questions and series: a table for each, and what the manifest says of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.accounting import events
from discreet.answer import Answer
from discreet.publish.intervals import find_width
from discreet.publish.priced_parts import PricedParts, count_released
from discreet.publish.private_keys import list_private
from discreet.publish.release_plan import ReleasePlan
from discreet.quote import Quote
from discreet.series.calendar import Calendar, Step
from discreet.series.mechanism import SeriesMechanism

QUESTION, SERIES, KEYS = "question", "series", "keys"
# So many rows of an answer are on the page.
_MOST_SHOWN = 40


def name_file(kind: str, number: int) -> str:
    """The file of a question or series."""
    return f"{kind}-{number + 1}.parquet"


def make_part_tables(parts: PricedParts, answers: Sequence[Answer]) -> dict[str, Any]:
    """The tables of all questions and series, by their files, as Arrow."""
    found = {name_file(QUESTION, number): answer.table for number, answer in enumerate(answers)}
    for number, told in enumerate(_describe_series(parts)):
        found[name_file(SERIES, number)] = make_series_table(told)
    return found


def describe_parts(parts: PricedParts, answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """What the manifest says of questions and series."""
    found = []
    plans = () if parts.quoted is None else parts.quoted.plans
    for number, (entry, plan, answer) in enumerate(zip(parts.plan.questions, plans, answers, strict=True)):
        found.append(
            {
                "kind": QUESTION,
                "name": entry.name,
                "sql": entry.sql,
                "file": name_file(QUESTION, number),
                "mechanisms": [events.dump(event) for event in plan.events],
                "limits": answer.receipt["limits"],
                "interval": answer.receipt["interval"],
                "shown": _show(answer.table),
            }
        )
    return found + _describe_series(parts)


def describe_keys(plan: ReleasePlan, keys: Quote | None) -> list[dict[str, Any]]:
    """What the manifest says of keys that were named from the data."""
    if keys is None:
        return []
    return [
        {
            "kind": KEYS,
            "name": f"keys of {name}",
            "file": None,
            "mechanisms": [events.dump(event) for event in asked.events],
        }
        for name, asked in zip(list_private(plan), keys.plans, strict=True)
    ]


def _show(table: Any) -> dict[str, Any]:
    """The first rows of an answer as texts, for the page."""
    rows = [[_write(value) for value in row.values()] for row in table.slice(0, _MOST_SHOWN).to_pylist()]
    return {"columns": table.column_names, "rows": rows, "count": table.num_rows}


def _write(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _describe_series(parts: PricedParts) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for number, (entry, series) in enumerate(zip(parts.plan.series, parts.series)):
        drawn, mechanism = series.read_drawn()
        measured = drawn[: count_released(entry)]
        limits = series.plan.limits
        found.append(
            {
                "kind": SERIES,
                "name": entry.name,
                "question": entry.question,
                "file": name_file(SERIES, number),
                "mechanisms": [events.dump(mechanism.event)],
                "first": entry.first.isoformat(),
                "every": entry.every,
                "periods": entry.periods,
                "wanted": entry.wanted,
                "window": mechanism.window,
                "limits": {"periods": limits.max_periods, "apart": limits.apart, "rows": limits.max_count},
                "level": str(series.plan.level),
                "coefficients": list(mechanism.weights),
                "variance": str(mechanism.variance),
                "measured": [str(value) for value in measured],
            }
        )
    return found


def make_series_table(told: Mapping[str, Any]) -> Any:
    """The periods of a series from what was drawn: start, value, low and high, as Arrow."""
    import pyarrow as pa

    mechanism = SeriesMechanism(
        periods=told["periods"],
        max_periods=1,
        mu=1,
        wanted=told["wanted"],
        window=told["window"],
        coefficients=tuple(told["coefficients"]),
    )
    measured = [int(value) for value in told["measured"]]
    values = mechanism.decode(measured) if measured else np.zeros(0)
    noise = np.sqrt(float(Fraction(told["variance"])) + 1 / 12)
    width = find_width(Fraction(told["level"])) * noise * mechanism.unit_deviations[: len(values)]
    calendar = Calendar(dt.date.fromisoformat(told["first"]), Step(told["every"]), told["periods"])
    return pa.table(
        {
            "start": pa.array([calendar.start(period) for period in range(len(values))], pa.date32()),
            "value": pa.array(values, pa.float64()),
            "low": pa.array(values - width, pa.float64()),
            "high": pa.array(values + width, pa.float64()),
        }
    )
