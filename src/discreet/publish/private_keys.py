"""Private keys: columns whose values are named from the data, where enough units share them, before tables are counted.

*Statement.* The values of such a column are the keys that the curator's own rule for private keys names, in a count of
rows by this column (``mechanisms.threshold`` and ``mechanisms.weighted_selection``): rounded normal noise, and an event
of probability at most δ. A tenth of μ² pays for all of these counts. Which cells the tables have depends on the keys,
and their noise does not: μ² of the tables is fixed before, so losses add up as in ``stages``. Both are in the one
charge of the release: the keys are drawn on its line, and the tables on a line that costs nothing.

At most ``max_keys`` keys become cells, those with the largest noisy counts; all other values are in one cell.
"""

# ruff: noqa: S608  # our own parser reads these texts, and nothing else does
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from discreet.accounting import events
from discreet.answer import Answer
from discreet.curator import Curator
from discreet.errors import BudgetExceeded, UsageError
from discreet.gaussian_price import make_event
from discreet.late_dataclass import dataclass
from discreet.offer import BudgetOffer, NoiseFamily
from discreet.plan.types import Type, Value
from discreet.price import find_within
from discreet.publish.columns import MOST_KEYS, stand_in
from discreet.publish.release_plan import ReleasePlan
from discreet.quote import Quote

# What naming keys gets of μ².
KEY_SHARE = Fraction(1, 10)


@dataclass(frozen=True)
class KeyPrice:
    """What a release with private keys was priced at: the μ² of all of its noise, and the δ for naming keys."""

    mu_squared: Fraction
    delta: Fraction

    def __str__(self) -> str:
        return f"{self.mu_squared} {self.delta}"

    @classmethod
    def read(cls, text: str) -> KeyPrice:
        """The price that ``str`` wrote."""
        mu_squared, delta = map(Fraction, text.split())
        return cls(mu_squared, delta)

    @property
    def rest(self) -> Fraction:
        """The μ² of tables, questions and series."""
        return self.mu_squared * (1 - KEY_SHARE)


def list_private(plan: ReleasePlan) -> tuple[str, ...]:
    """The columns whose keys come from the data."""
    return tuple(name for name, choice in plan.columns.items() if choice.private)


def quote_keys(plan: ReleasePlan, curator: Curator, price: KeyPrice, analyst: str) -> Quote:
    """The questions that name keys, at their part of a price. Nothing is charged."""
    named = list_private(plan)
    where = f" WHERE {plan.where}" if plan.where else ""
    texts = []
    for name in named:
        own = plan.columns[name].of
        text = own if own is not None else '"' + name.replace('"', '""') + '"'
        texts.append(f"SELECT {text} AS key, COUNT(*) AS n FROM {plan.source}{where} GROUP BY {text}")
    each = price.mu_squared * KEY_SHARE / len(named)
    return curator.quote_at(
        texts, [each] * len(named), level=plan.level, analyst=analyst, delta=price.delta / len(named)
    )


def find_key_price(plan: ReleasePlan, curator: Curator, analyst: str) -> KeyPrice:
    """The largest price that the offer pays for, keys and all; refused where the budget has no δ."""
    terms = curator.terms_for(analyst)
    paid = BudgetOffer(plan.offer, terms.budget, terms.per_query, terms.left)
    if not paid.by_share:
        raise UsageError(
            "Keys from the data need a budget of ε and δ, and an offer of epsilon or share. Declare the keys, or offer "
            "one of these. Nothing was charged."
        )
    delta = paid.key_delta()

    def list_events(rho: Fraction) -> tuple[events.Event, ...]:
        price = KeyPrice(2 * rho, delta)
        named = quote_keys(plan, curator, price, analyst)
        return (make_event(price.rest, terms.unit, terms.neighbours), *named.events)

    found = find_within(list_events, lambda rho: KeyPrice(2 * rho, delta), paid, NoiseFamily.GAUSSIAN)
    if found is None:
        raise BudgetExceeded("This offer buys no noise that fits what is left. Nothing was charged.")
    return found


def take_keys(plan: ReleasePlan, answers: Sequence[Answer], kinds: Mapping[str, Type]) -> ReleasePlan:
    """The plan with the keys that were named. Post-processing: the largest noisy counts win."""
    named: dict[str, tuple[Value, ...]] = {}
    for name, answer in zip(list_private(plan), answers, strict=True):
        rows = sorted(answer.table.to_pylist(), key=lambda row: (-row["n"], str(row["key"])))
        keys = [row["key"] for row in rows if row["key"] is not None]
        # A column without keys has only other values; one cell that nothing is in stands for its keys.
        most = plan.columns[name].max_keys or MOST_KEYS
        named[name] = tuple(sorted(keys[:most], key=str)) or stand_in(kinds[name], 1)
    return _with_keys(plan, named)


def _with_keys(plan: ReleasePlan, keys: Mapping[str, tuple[Value, ...]]) -> ReleasePlan:
    columns = {name: replace(c, keys=keys[name]) if name in keys else c for name, c in plan.columns.items()}
    return replace(plan, columns=columns)
