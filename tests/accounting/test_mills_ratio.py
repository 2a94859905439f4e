"""Mills' ratio against mpmath with 400 bits, where it is hardest: at the cells' borders, near zero, and around 8."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from discreet.accounting import mills_ratio as module
from discreet.accounting.mills_ratio import LEAST, RELATIVE_ERROR, mills_ratio
from discreet.exact import Floats


def _true(x: float) -> mpmath.mpf:
    return mpmath.sqrt(mpmath.pi / 2) * mpmath.exp(mpmath.mpf(x) ** 2 / 2) * mpmath.erfc(mpmath.mpf(x) / mpmath.sqrt(2))


def _find_worst(xs: Floats) -> float:
    with mpmath.workprec(400):
        pairs = zip(mills_ratio(xs), xs)
        return max(float(abs(mpmath.mpf(float(ratio)) / _true(float(x)) - 1)) for ratio, x in pairs)


def _list_points() -> Floats:
    random = np.random.default_rng(1)
    borders = np.arange(-39, 80) / 8
    tiny = 10 ** random.uniform(-300, 0, 100)
    inside, outside = random.uniform(-5, 8, 600), random.uniform(8, 60, 100)
    beside = [np.nextafter(borders, np.inf), np.nextafter(borders, -np.inf)]
    return np.concatenate([[LEAST], inside, outside, tiny, -tiny, borders, *beside])


def test_the_relative_error_is_as_stated() -> None:
    """Less than a third of the bound is used."""
    assert _find_worst(_list_points()) < RELATIVE_ERROR / 3


@pytest.mark.parametrize(("part", "less"), [("_TERMS", 15), ("_LEVELS", 8)])
def test_fewer_terms_are_noticed(monkeypatch: pytest.MonkeyPatch, part: str, less: int) -> None:
    """The negative control: with a few terms or levels less the error is out of bounds."""
    monkeypatch.setattr(module, part, less)
    module._list_coefficients.cache_clear()
    try:
        assert _find_worst(_list_points()) > RELATIVE_ERROR
    finally:
        module._list_coefficients.cache_clear()


def test_what_is_left_out_is_as_stated() -> None:
    """All coefficients are positive; what follows the last, and one level of the fraction, are below 2^-60."""
    ratio = module._compute_at_last()
    for cell in range(64, -41, -1):
        terms = module._expand(ratio, cell)
        assert min(terms[: module._TERMS]) > 0
        ratio = sum(term // 8**n for n, term in enumerate(terms))
        rest = sum(term // 8**n for n, term in enumerate(terms) if n >= module._TERMS)
        assert 0 <= rest << 60 < ratio
    with mpmath.workprec(400):
        assert abs(mpmath.mpf(ratio) / 2**module._BITS / _true(-41 / 8) - 1) < 2.0**-150
        convergents = []
        for levels in (module._LEVELS - 1, module._LEVELS):
            below = mpmath.mpf(8)
            for level in range(levels, 0, -1):
                below = 8 + level / below
            convergents.append(1 / below)
        assert abs(convergents[0] / convergents[1] - 1) < 2.0**-60


def test_ends() -> None:
    """Zero at infinity, at most 1/x in the far tail; nothing below the least x, and what is no number stays so."""
    assert list(mills_ratio(np.array([np.inf, 1e200]))) == [0.0, 1e-200]
    assert np.isnan(mills_ratio(np.array([np.nan]))).all() and mills_ratio(np.array([])).size == 0
    with pytest.raises(ValueError, match="from -5 on"):
        mills_ratio(np.array([0.0, np.nextafter(LEAST, -np.inf)]))
