"""Writes exact numbers, prices and budgets as text and reads them back, so that the log has exactly what was counted.

>>> price_to_text((Fraction(1, 10), None)), read_price('["1/10",null]')
('["1/10",null]', (Fraction(1, 10), None))
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from discreet.accounting.sums import Price
from discreet.errors import LedgerDamaged
from discreet.exact import Exact, Ln
from discreet.privacy import Budget

_EXACT = re.compile(r"(ln\()?(\d+(?:/[1-9]\d*)?)(\))?")


def exact_to_text(value: Exact) -> str:
    """A number as text, such as ``1/10`` or ``ln(3)``."""
    return str(value)


def read_exact(text: object) -> Exact:
    """The number that ``exact_to_text`` wrote; never negative, so that no line can give budget back."""
    match = _EXACT.fullmatch(text) if isinstance(text, str) else None
    if match is None or bool(match[1]) != bool(match[3]):
        raise LedgerDamaged("A number in the ledger is not an exact number. Nothing was charged.")
    number = Fraction(match[2])
    return Ln(number) if match[1] else number


def price_to_text(price: Price) -> str:
    """A price as JSON: a list of exact numbers, null where a sum is not known."""
    return json.dumps([None if part is None else str(part) for part in price], separators=(",", ":"))


@lru_cache(maxsize=65_536)
def read_price(text: str) -> Price:
    """The price that ``price_to_text`` wrote."""
    parts = [None if part is None else read_exact(part) for part in json.loads(text)]
    if any(isinstance(part, Ln) for part in parts):
        raise LedgerDamaged("A price in the ledger is not rational. Nothing was charged.")
    return tuple(parts)  # type: ignore[arg-type]  # logarithms were refused above


def dump_budget(budget: Budget) -> dict[str, str]:
    """A budget as plain values, the same for equal budgets however they were typed."""
    known = {budget.kind.word: exact_to_text(budget.amount())}
    return known | {"delta": exact_to_text(budget.slack())} if budget.slack() else known


def load_budget(record: Mapping[str, Any]) -> Budget:
    """The budget that ``dump_budget`` wrote."""
    values: dict[str, Any] = {name: read_exact(text) for name, text in record.items()}
    return Budget(**values)
