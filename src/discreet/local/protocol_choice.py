"""The choice of a protocol, by each candidate's exact error, report size, server cost and weakness to manipulation.

>>> choice = choose(1000, epsilon=1, n=100_000)
>>> choice.best.name
'projective'
>>> choose(16, epsilon=1, n=10_000).best.name
'subset'
"""

from __future__ import annotations

import math
from typing import ClassVar

from discreet import parameters
from discreet.errors import DiscreetError, ParameterError
from discreet.exact import Exact
from discreet.late_dataclass import dataclass
from discreet.local.domain import Domain
from discreet.local.estimation import z_score
from discreet.local.hashing import LocalHashing
from discreet.local.number import HybridResponse, NumberProtocol, SignResponse, WindowResponse
from discreet.local.protocol import FrequencyProtocol, Protocol, read_epsilon
from discreet.local.task import FREQUENCY, Task
from discreet.local.unary import UnaryEncoding

_FIX = "Relax a limit, or give more epsilon."


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of a deployment.

    ``payload_bytes`` is the size of one report, ``server_steps`` the work of the aggregator for each report, and
    ``influence`` the number of honest people that one malicious report may outweigh. With ``additive`` reports must be
    vectors that can be summed without being seen (secure aggregation).
    """

    payload_bytes: int | None = None
    server_steps: float | None = None
    influence: float | None = None
    additive: bool = False


@dataclass(frozen=True, kw_only=True)
class ProtocolCandidate:
    """One protocol and what it would cost.

    ``influence`` is how many honest people one malicious report outweighs on a value that it is aimed at, ``targets``
    how many values it can be aimed at together (None for all).
    """

    name: str
    protocol: Protocol
    variance: float
    error: float
    bits: int
    server_steps: float
    influence: float
    targets: int | None
    reason: str = ""

    @property
    def fits(self) -> bool:
        """Whether all limits are met."""
        return not self.reason


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The chosen protocol, all candidates in the order of their error, and the reason."""

    best: ProtocolCandidate
    candidates: tuple[ProtocolCandidate, ...]
    because: str
    epsilon: Exact
    people: int
    domain: Domain

    HEADS: ClassVar[tuple[str, ...]] = (
        "protocol",
        "n·var",
        "error",
        "bits",
        "server",
        "influence",
        "values",
        "",
    )

    def table(self) -> list[tuple[str, ...]]:
        """The candidates as rows of text, for people."""
        return [
            (
                one.name,
                f"{one.variance:.4g}",
                f"± {one.error:.3g}",
                f"{one.bits:,}",
                f"{one.server_steps:,.3g}",
                f"{one.influence:.3g}",
                "all" if one.targets is None else f"{one.targets:,}",
                "chosen" if one is self.best else one.reason,
            )
            for one in self.candidates
        ]

    def explain(self) -> str:
        """The table and the reason as text."""
        rows = [self.HEADS, *self.table()]
        widths = [max(len(row[place]) for row in rows) for place in range(len(self.HEADS))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        return "\n".join([*lines, "", self.because])

    def task(self, name: str, *, epoch: int = 0, values: int | None = None, epochs: int | None = None) -> Task:
        """The task of the choice."""
        return Task(
            name=name,
            epsilon=self.epsilon,
            domain=self.domain,
            protocol=self.best.protocol,
            epoch=epoch,
            values=values,
            epochs=epochs,
        )


def choose(
    domain: object,
    *,
    epsilon: object,
    n: int,
    limits: Limits | None = None,
    frequency: float = 0.0,
    level: float = 0.95,
    tolerance: float = 0.03,
) -> Choice:
    """The protocol with the least error that meets the limits; of those within ``tolerance`` of it, the shortest.

    ``frequency`` is the share of people at which errors are compared: rare values by default. For a range of numbers
    the candidates are those for means, compared at their worst answer.
    """
    exact, asked, limits = read_epsilon(epsilon), Domain.of(domain), limits or Limits()
    people = parameters.read_whole(n, "n", most=1 << 40)
    reach = z_score(float(parameters.read_probability(level, "level"))) / math.sqrt(people)
    candidates = [_apply_limits(one, limits) for one in _list_candidates(asked, exact, frequency, people, reach)]
    candidates.sort(key=lambda one: one.variance)
    fitting = [one for one in candidates if one.fits]
    if not fitting:
        raise ParameterError("limits", "leave no protocol", _FIX)
    least = fitting[0].variance
    near = [one for one in fitting if one.variance <= least * (1 + tolerance)]
    best = min(near, key=lambda one: (one.bits, one.variance))
    because = f"{best.name}: the least error of those that fit."
    if best is not fitting[0]:
        more = best.variance / least - 1
        because = (
            f"{best.name}: {more:.1%} more variance than {fitting[0].name}, "
            f"in {best.bits:,} bits instead of {fitting[0].bits:,}."
        )
    return Choice(best=best, candidates=tuple(candidates), because=because, epsilon=exact, people=people, domain=asked)


def _list_candidates(
    domain: Domain, epsilon: Exact, frequency: float, people: int, reach: float
) -> list[ProtocolCandidate]:
    if domain.numeric:
        return [
            _make_number_candidate(kind.for_epsilon(epsilon), reach)
            for kind in (SignResponse, WindowResponse, HybridResponse)
        ]
    found = []
    if domain.closed:
        size = domain.count
        for name, kind in FREQUENCY.items():
            try:
                protocol = kind.for_epsilon(epsilon, size)
            except DiscreetError:  # the domain is too large or ε too small for this protocol
                continue
            shown = "unary (OUE)" if name == "unary" else name
            found.append(_make_frequency_candidate(shown, protocol, frequency, people, reach))
            if name == "unary":
                found.append(
                    _make_frequency_candidate(
                        "unary (SUE)", UnaryEncoding.symmetric(epsilon, size), frequency, people, reach
                    )
                )
    hashed = LocalHashing.for_epsilon(epsilon, key_words=1 if domain.closed else 2)
    variance = hashed.unit_variance(frequency)
    found.append(
        ProtocolCandidate(
            name="hash",
            protocol=hashed,
            variance=variance,
            error=reach * math.sqrt(variance),
            bits=8 * hashed.payload_bytes,
            server_steps=float(domain.count if domain.closed else 1),
            influence=hashed.influence,
            targets=None,  # a malicious client may choose a seed that puts every value in one bucket
        )
    )
    return found


def _make_frequency_candidate(
    name: str, protocol: FrequencyProtocol, frequency: float, people: int, reach: float
) -> ProtocolCandidate:
    variance = protocol.unit_variance(frequency)
    size = protocol.state_size
    bitwise = name.startswith(("unary", "subset"))
    # One step a report and a transform over the state at the end, or one step for each bit.
    steps = float(size) if bitwise else 1 + size * max(1.0, math.log2(size)) / people
    return ProtocolCandidate(
        name=name,
        protocol=protocol,
        variance=variance,
        error=reach * math.sqrt(variance),
        bits=8 * protocol.payload_bytes,
        server_steps=steps,
        influence=protocol.influence,
        targets=protocol.targets,
    )


def _make_number_candidate(protocol: NumberProtocol, reach: float) -> ProtocolCandidate:
    variance = max(protocol.unit_variance(answer) for answer in (0.0, 1.0))
    return ProtocolCandidate(
        name=protocol.name,
        protocol=protocol,
        variance=variance,
        error=reach * math.sqrt(variance),
        bits=8 * protocol.payload_bytes,
        server_steps=1.0,
        influence=protocol.influence,
        targets=1,
    )


def _apply_limits(one: ProtocolCandidate, limits: Limits) -> ProtocolCandidate:
    """The candidate with the first limit that it breaks."""
    reason = ""
    if limits.payload_bytes is not None and one.bits > 8 * limits.payload_bytes:
        reason = f"more than {limits.payload_bytes:,} bytes"
    elif limits.server_steps is not None and one.server_steps > limits.server_steps:
        reason = f"more than {limits.server_steps:,g} steps a report"
    elif limits.influence is not None and one.influence > limits.influence:
        reason = f"influence above {limits.influence:g}"
    elif limits.additive and not one.name.startswith("unary"):
        reason = "not additive"
    return one if not reason else ProtocolCandidate(**{**one.__dict__, "reason": reason})
