"""What a privacy parameter means: in odds, as a picture, beside known uses, for a group, and in error.

A guide for people who must choose: it computes what can be computed, and says of the rest only what others published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any

from discreet import parameters
from discreet.late_dataclass import dataclass
from discreet.mechanisms import Gaussian, Laplace
from discreet.parameters import Number
from discreet.pictures import LawPair, PictureTerms, make_pair

GROUP = 4
_DELTA = 1e-6
_ROWS = (100, 1_000, 10_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class KnownUse:
    """A published use, with the unit that its loss is about. Units differ, so losses can be compared only roughly."""

    epsilon: float
    what: str
    unit: str
    source: str


KNOWN_USES = (
    KnownUse(1.0, "Wikipedia page views by country", "a person's 10 views of a day", "Adeleye et al. 2023"),
    KnownUse(2.0, "health types in use on phones, local model", "a person's day", "Apple 2017, overview"),
    KnownUse(2.64, "mobility reports during an epidemic", "a person's day", "Aktay et al. 2020"),
    KnownUse(4.0, "popular emoji on phones, local model", "a person's day", "Apple 2017, overview"),
    KnownUse(17.14, "US census 2020, redistricting, persons (δ = 1e-10)", "a person", "Abowd et al. 2022"),
)


@dataclass(frozen=True, slots=True)
class ParameterGuide:
    """The meaning of one parameter, ready to be printed."""

    name: str
    value: float
    odds: str
    group_odds: str
    error: float
    rows: tuple[int, ...]
    pair: LawPair

    @property
    def nearest(self) -> tuple[KnownUse, ...]:
        """The published uses around an ε: the largest that is not above it, and the smallest above."""
        if self.name != "epsilon":
            return ()
        below = [use for use in KNOWN_USES if use.epsilon <= self.value]
        above = [use for use in KNOWN_USES if use.epsilon > self.value]
        return (*below[-1:], *above[:1])

    @property
    def lines(self) -> tuple[str, ...]:
        """The guide without the picture, one statement a line."""
        shares = ", ".join(f"{self.error / rows:.2g} of {rows:,}" for rows in self.rows)
        about = [
            self.odds,
            self.group_odds,
            f"One count is then off by at most {self.error:g}, 95 times of 100, however large it is.",
            f"As a share of the rows that are counted: {shares}.",
            "All answers about the same people add up: two of ε = 0.5 cost at most ε = 1.",
        ]
        if self.name == "epsilon":
            about.append("Published uses near it. Look at what one loss is about before you compare:")
            about += [f"  ε = {use.epsilon:g} for {use.unit}: {use.what} ({use.source})" for use in self.nearest]
        return tuple(about)

    def to_dict(self) -> dict[str, Any]:
        """The guide as a document."""
        return {
            "parameter": self.name,
            "value": self.value,
            "odds": self.odds,
            "odds_of_a_group": self.group_odds,
            "error_of_a_count": self.error,
            "shares": [{"rows": rows, "share": self.error / rows} for rows in self.rows],
            "known_uses": [asdict(use) for use in self.nearest],
            "advantage": self.pair.advantage,
        }


def guide_epsilon(epsilon: Number, *, rows: int | None = None) -> ParameterGuide:
    """What ε means, for a release that is ε-private and a count with Laplace noise.

    >>> print(guide_epsilon(0.5).lines[0])
    A guess about one person that was 50:50 becomes at most 62.3:37.7.
    """
    noise = Laplace(sensitivity=1, epsilon=parameters.read_positive(epsilon, "epsilon"))
    terms = PictureTerms(epsilon=epsilon)
    return _make_guide("epsilon", noise, make_pair("laplace", terms), delta=0, rows=rows)


def guide_rho(rho: Number, *, rows: int | None = None) -> ParameterGuide:
    """What ρ means, for Gaussian noise on a count; the odds leave out outputs of probability 1e-6."""
    noise = Gaussian(sensitivity=1, rho=parameters.read_positive(rho, "rho"))
    return _make_guide("rho", noise, make_pair("gaussian", PictureTerms(rho=rho)), delta=_DELTA, rows=rows)


def _make_guide(
    name: str, noise: Laplace | Gaussian, pair: LawPair, *, delta: float, rows: int | None
) -> ParameterGuide:
    sizes = _ROWS if rows is None else (parameters.read_whole(rows, "rows"),)
    one, group = noise.privacy.odds(delta), noise.privacy.for_group(GROUP).odds(delta)
    return ParameterGuide(
        name=name,
        value=float(getattr(noise, name)),
        odds=replace(one, about="one person").sentence(),
        group_odds=replace(group, about=f"{GROUP} people together").sentence(),
        error=float(noise.error(beta=0.05)),
        rows=sizes,
        pair=pair,
    )


GUIDES: Mapping[str, Callable[..., ParameterGuide]] = MappingProxyType({"epsilon": guide_epsilon, "rho": guide_rho})
