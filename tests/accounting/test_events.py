"""Events: exact fields, JSON both ways, and refusal of every bad parameter."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from discreet.accounting import events as ev
from discreet.errors import ParameterError, UnknownLoss
from discreet.exact import ln
from discreet.privacy import Neighbours, Unit


def test_nested_samples_and_logarithms_survive() -> None:
    inner = ev.PoissonSampled(event=ev.RandomizedResponse(epsilon=ln(3), unit="p"), rate=0.5, unit="p")
    outer = ev.PoissonSampled(event=inner, rate=Fraction(1, 3), count=4, unit="p")
    record = ev.dump(outer)
    assert record["event"]["event"]["epsilon"] == "ln(3)"
    assert ev.load(json.loads(json.dumps(record))) == outer


def test_floats_are_the_decimals_they_print_as() -> None:
    assert ev.Pure(epsilon=0.1) == ev.Pure(epsilon=Fraction(1, 10)) == ev.Pure(epsilon=Decimal("0.1"))
    assert ev.Pure(epsilon=0.1).epsilon == Fraction(1, 10)
    assert ev.Pure(epsilon=1, unit="p", neighbours="replace").unit == Unit("p")
    assert ev.Pure(epsilon=1).neighbours is Neighbours.ADD_REMOVE


BAD: list[tuple[type[ev.Event], dict[str, Any], str]] = [
    (ev.Laplace, {"sensitivity": 0, "scale": 1}, "sensitivity"),
    (ev.Laplace, {"sensitivity": 1, "scale": -1}, "scale"),
    (ev.Laplace, {"sensitivity": 1, "scale": float("nan")}, "scale"),
    (ev.DiscreteLaplace, {"sensitivity": 1.5, "scale": 1}, "sensitivity"),
    (ev.Gaussian, {"sensitivity": 1, "sigma": float("inf")}, "sigma"),
    (ev.DiscreteGaussian, {"squared_sensitivity": 0, "variance": 1}, "squared_sensitivity"),
    (ev.DiscreteGaussian, {"squared_sensitivity": 1, "variance": 0}, "variance"),
    (ev.RoundedGaussian, {"squared_sensitivity": 0.5, "variance": 1}, "squared_sensitivity"),
    (ev.RoundedGaussian, {"squared_sensitivity": 1, "variance": -1}, "variance"),
    (ev.DiscreteGaussian, {"squared_sensitivity": 1, "variance": 1, "dimension": 0}, "dimension"),
    (ev.RandomizedResponse, {"epsilon": 0}, "epsilon"),
    (ev.RandomizedResponse, {"epsilon": 1, "categories": 1}, "categories"),
    (ev.Exponential, {"epsilon": "1"}, "epsilon"),
    (ev.Pure, {"epsilon": True}, "epsilon"),
    (ev.Pure, {"epsilon": 1, "count": 0}, "count"),
    (ev.Pure, {"epsilon": 1, "count": 1.0}, "count"),
    (ev.Pure, {"epsilon": 1, "neighbours": "swap"}, "neighbours"),
    (ev.Pure, {"epsilon": 1, "unit": 3}, "unit"),
    (ev.Approximate, {"epsilon": 1, "delta": 1}, "delta"),
    (ev.Approximate, {"epsilon": -1, "delta": 0.1}, "epsilon"),
    (ev.ZeroConcentrated, {"rho": 0}, "rho"),
    (ev.ZeroConcentrated, {"rho": 1, "delta": -0.1}, "delta"),
    (ev.PoissonSampled, {"event": 1, "rate": 0.5}, "event"),
    (ev.PoissonSampled, {"event": ev.Pure(epsilon=1), "rate": 0}, "rate"),
    (ev.PoissonSampled, {"event": ev.Pure(epsilon=1), "rate": 1.5}, "rate"),
    (ev.PoissonSampled, {"event": ev.Pure(epsilon=1, unit="p"), "rate": 0.5}, "unit"),
    (ev.PoissonSampled, {"event": ev.Pure(epsilon=1, neighbours="replace"), "rate": 0.5}, "neighbours"),
]


@pytest.mark.parametrize(("kind", "fields", "name"), BAD)
def test_bad_parameters_are_named(kind: type[ev.Event], fields: dict[str, Any], name: str) -> None:
    with pytest.raises(ParameterError) as caught:
        kind(**fields)
    assert caught.value.name == name


def test_foreign_records_are_refused() -> None:
    good = ev.dump(ev.Pure(epsilon=ln(3)))
    with pytest.raises(ParameterError, match="mapping"):
        ev.load([])  # type: ignore[arg-type]  # on purpose
    with pytest.raises(UnknownLoss, match="version"):
        ev.load(good | {"version": 2})
    with pytest.raises(UnknownLoss, match="no known event"):
        ev.load(good | {"kind": "Novel"})
    with pytest.raises(ParameterError, match="unknown fields"):
        ev.load(good | {"more": 1})
    with pytest.raises(ParameterError, match="missing"):
        ev.load({key: value for key, value in good.items() if key != "count"})
    for text in ("0.1", "ln(x)", "1/0", "-1", "ln(1/2)", "1e3", ""):
        with pytest.raises(ParameterError):
            ev.load(good | {"epsilon": text})


def test_counts_multiply() -> None:
    assert ev.Pure(epsilon=1, count=3).times(4) == ev.Pure(epsilon=1, count=12)
    with pytest.raises(ParameterError, match="count"):
        ev.Pure(epsilon=1, count=1 << 61).times(4)
