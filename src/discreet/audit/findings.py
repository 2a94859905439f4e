"""The result of an audit: a verdict, its numbers, and a witness that anybody can check again."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, field
from enum import StrEnum
from typing import Any

from discreet.late_dataclass import dataclass


class Verdict(StrEnum):
    """How a check ended. Only ``HOLDS`` is a pass."""

    HOLDS = "holds"  # the check could have seen an event of the stated mass, and found nothing against the claim
    BROKEN = "broken"  # the claim is refuted, and there is a witness
    RAISES = "raises"  # the function raised in some or all runs, so there was no answer to check
    EMPTY = "returns nothing"
    SHAPE = "shape varies"  # answers to one dataset differ in shape, and this was not declared
    TOO_FEW = "too few samples"  # the claim could not have been refuted; ``needed`` says what it takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """Two datasets and an event that separates them by more than the claim allows, or the best event found.

    ``hits`` of ``runs`` outputs on the first dataset fell into the event, ``other_hits`` of ``other_runs`` on the
    second. An exact or a grey-box witness has no counts: ``event`` says what differs.
    """

    first: str
    second: str
    event: str
    hits: int | None = None
    runs: int | None = None
    other_hits: int | None = None
    other_runs: int | None = None

    def __str__(self) -> str:
        lines = [f"D  = {self.first}", f"D' = {self.second}", f"event: {self.event}"]
        if self.runs is not None:
            lines.append(
                f"seen {self.hits:,} of {self.runs:,} times on D, {self.other_hits:,} of {self.other_runs:,} on D'"
            )
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check.

    ``claimed`` is the ε of the claim at ``delta``; ``lower`` is a lower bound on the true one, and ``delta_lower`` a
    lower bound on the true δ at the claimed ε. Both hold with probability 1 − ``alpha`` (an exact check has alpha 0).
    ``smallest`` is the smallest probability of an event that the check could have seen. ``needed`` is the number of
    runs on each dataset that are needed to refute the claim.
    """

    name: str
    method: str
    verdict: Verdict
    detail: str = ""
    claim: str = ""
    claimed: float | None = None
    delta: float = 0.0
    lower: float | None = None
    delta_lower: float | None = None
    alpha: float = 0.0
    samples: int = 0
    smallest: float | None = None
    needed: int | None = None
    witness: Witness | None = None
    seconds: float = field(default=0.0, compare=False)

    @property
    def holds(self) -> bool:
        """Whether the check passed."""
        return self.verdict is Verdict.HOLDS

    def __bool__(self) -> bool:
        return self.holds

    def to_dict(self) -> dict[str, Any]:
        """The finding as plain JSON values."""
        plain = asdict(self) | {"verdict": str(self.verdict), "holds": self.holds}
        return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in plain.items()}

    def __str__(self) -> str:
        lines = [f"{self.verdict.upper()}: {self.name} ({self.method})"]
        if self.claim:
            lines.append(f"claimed {self.claim}")
        lines += [line for line in (self.describe_bound(), self.detail) if line]
        if self.witness is not None:
            lines.append(str(self.witness))
        if self.smallest is not None:
            lines.append(f"smallest event this could see: probability {self.smallest:.2g} ({self.samples:,} runs each)")
        if self.needed is not None:
            lines.append(f"the claim needs at least {self.needed:,} runs on each dataset")
        return "\n".join(lines)

    __repr__ = __str__

    def describe_bound(self) -> str:
        """The lower bound in words, with its confidence."""
        if self.lower is None:
            return ""
        at = f" at δ = {self.delta:.3g}" if self.delta else ""
        sure = f", with {1 - self.alpha:.4%} confidence" if self.alpha else ""
        return f"measured ε ≥ {self.lower:.4f}{at}{sure}"


def all_hold(findings: Iterable[Finding]) -> bool:
    """Whether every check passed, and there was one."""
    listed = list(findings)
    return bool(listed) and all(listed)
