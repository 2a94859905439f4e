"""A task: the question, the protocol and its integers. It is immutable, and its digest is its name.

Every report carries the first 16 bytes of its task's digest, so that a report for one task can never be read as one for
another. A task declares its ε, and it is refused if its integers cost more. So a person who receives a task can check
what it costs before answering. docs/local-wire.md describes the format.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Self

from discreet import parameters
from discreet.errors import ParameterError
from discreet.exact import Exact, Ln, multiply
from discreet.late_dataclass import dataclass
from discreet.local.domain import Domain
from discreet.local.hadamard import HadamardResponse
from discreet.local.hashing import LocalHashing
from discreet.local.krr import KaryResponse
from discreet.local.number import HybridResponse, SignResponse, WindowResponse
from discreet.local.projective import ProjectiveResponse
from discreet.local.protocol import FrequencyProtocol, Protocol, read_epsilon
from discreet.local.rappor import Rappor
from discreet.local.subset import SubsetSelection
from discreet.local.unary import UnaryEncoding
from discreet.local.wave import SquareWave

FORMAT = "local/1"
DIGEST_BYTES = 16
_KEYS = {"discreet", "name", "epoch", "epsilon", "protocol", "domain", "parameters"}
_FIX = "Make the task with Task.for_epsilon, or copy it whole from its author."

FREQUENCY: dict[str, type[FrequencyProtocol]] = {
    kind.name: kind for kind in (KaryResponse, UnaryEncoding, HadamardResponse, SubsetSelection, ProjectiveResponse)
}
NUMBER: dict[str, type[SignResponse] | type[WindowResponse] | type[HybridResponse]] = {
    kind.name: kind for kind in (SignResponse, WindowResponse, HybridResponse)
}
WAVE_BUCKETS = 256


@dataclass(frozen=True, kw_only=True)
class Task:
    """One question to many people.

    A question that is asked again and again has one of two more parameters; a question that is answered once has none.
    ``epochs`` = E: it is asked in E public epochs, numbered 0 to E − 1 by ``epoch``. In each epoch the first answer of
    a person is pinned. ``values`` = v: at most v distinct answers of one person are memoised, for ever.

    Privacy: one report is ``loss``-private for its sender, under replace, with the exact loss of the integers in use,
    at most the declared ``epsilon``. With ``epochs`` all reports of one person together cost at most E times that, for
    any two histories of answers. With ``values`` they cost at most v times that only between two histories that change
    and return at the same times; *when* an answer changed is visible, so between others there is no bound for v ≥ 2.
    Why: the protocol's own statement; see ``Person`` for the reports together.
    Reference: the protocol's; Erlingsson, Pihur & Korolova 2014 for memoisation.

    >>> task = Task.for_epsilon("colour", ["red", "green", "blue"], epsilon=1, protocol="krr")
    >>> task == Task.read(task.json) and task.loss <= 1
    True
    """

    name: str
    epsilon: Exact
    domain: Domain
    protocol: Protocol
    epoch: int = 0
    values: int | None = None
    epochs: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not 1 <= len(self.name) <= 200 or not self.name.isprintable():
            raise ParameterError("name", "must be a text of 1 to 200 printable characters", "Give name='colour'.")
        parameters.read_whole(self.epoch, "epoch", least=0, most=1 << 52)
        if self.values is not None:
            parameters.read_whole(self.values, "longitudinal.values", most=1 << 20)
        if self.epochs is not None:
            self._check_epochs(self.epochs)
        if not self.longitudinal and isinstance(self.protocol, Rappor):
            raise ParameterError("longitudinal", "is missing: RAPPOR answers are memoised", "Give epochs=1, say.")
        if self.loss > self.epsilon:
            fix = "Do not answer it: its author must correct the parameters."
            raise ParameterError("task", "has parameters that cost more than the epsilon it declares", fix)

    def _check_epochs(self, epochs: int) -> None:
        parameters.read_whole(epochs, "longitudinal.epochs", most=1 << 20)
        if self.values is not None:
            raise ParameterError("longitudinal", "must have values or epochs, not both", "Give epochs alone.")
        if self.epoch >= epochs:
            fix = "Its last epoch is over: a new task is a new promise, and costs again."
            raise ParameterError("epoch", "must be below the number of epochs", fix)

    @classmethod
    def for_epsilon(
        cls,
        name: str,
        domain: object,
        *,
        epsilon: object,
        protocol: str,
        epoch: int = 0,
        values: int | None = None,
        epochs: int | None = None,
        buckets: int = WAVE_BUCKETS,
    ) -> Self:
        """The task whose exact loss is at most ε and as close to it as the integers allow.

        ``protocol`` is one of the names in docs/local-wire.md, or "sue" for the symmetric unary encoding.
        """
        exact, asked = read_epsilon(epsilon), Domain.of(domain)
        calibrated = _calibrate(protocol, asked, exact, buckets)
        return cls(
            name=name, epsilon=exact, domain=asked, protocol=calibrated, epoch=epoch, values=values, epochs=epochs
        )

    @classmethod
    def read(cls, text: str | bytes) -> Self:
        """A task from its JSON text; every part is checked, and unknown parts are refused."""
        try:
            given = json.loads(text)
        except (ValueError, RecursionError):
            raise ParameterError("task", "is not JSON", _FIX) from None
        if not isinstance(given, dict) or not set(given) - {"longitudinal"} == _KEYS:
            raise ParameterError("task", "must have exactly the keys of the format", _FIX)
        if given["discreet"] != FORMAT:
            raise ParameterError("task", f"is not of the format {FORMAT}", "Use the version that wrote it.")
        domain = Domain.read(given["domain"])
        if not isinstance(given["parameters"], dict):
            raise ParameterError("parameters", "must be an object", _FIX)
        asked_again = given.get("longitudinal", {})
        if not isinstance(asked_again, dict) or set(asked_again) not in (
            ({"values"}, {"epochs"}) if "longitudinal" in given else (set(),)
        ):
            raise ParameterError("longitudinal", "must be {values: v} or {epochs: E}", _FIX)
        for name, count in asked_again.items():
            parameters.read_whole(count, f"longitudinal.{name}", most=1 << 20)
        protocol = _read_protocol(given["protocol"], domain, given["parameters"])
        if set(protocol.parameters) != set(given["parameters"]):
            raise ParameterError("parameters", "must be exactly those of the protocol", _FIX)
        epsilon = _read_loss(given["epsilon"])
        return cls(
            name=given["name"],
            epsilon=epsilon,
            domain=domain,
            protocol=protocol,
            epoch=given["epoch"],
            **asked_again,
        )

    def in_epoch(self, epoch: int) -> Self:
        """The same question in another public epoch. Choose it by the calendar, never by the answer."""
        return replace(self, epoch=epoch)

    @property
    def longitudinal(self) -> bool:
        """Whether it is asked again and again, so that a person's client has to remember."""
        return self.values is not None or self.epochs is not None

    @property
    def loss(self) -> Ln:
        """The exact loss of one report, from the integers in use."""
        return self.protocol.epsilon

    @property
    def total_loss(self) -> Exact:
        """The loss of all reports of one person together: for any two histories with ``epochs``.

        With ``values`` it holds only between histories that change and return at the same times.
        """
        times = self.epochs if self.epochs is not None else self.values
        if times is None:
            raise ParameterError("longitudinal", "is missing: every report costs its loss anew", "Give epochs=1, say.")
        return multiply(self.loss, times)

    @property
    def json(self) -> str:
        """The canonical form: sorted keys, no spaces, UTF-8."""
        shown: dict[str, object] = {
            "discreet": FORMAT,
            "name": self.name,
            "epoch": self.epoch,
            "epsilon": str(self.epsilon),
            "protocol": self.protocol.name,
            "domain": self.domain.json,
            "parameters": self.protocol.parameters,
        }
        if self.values is not None:
            shown["longitudinal"] = {"values": self.values}
        if self.epochs is not None:
            shown["longitudinal"] = {"epochs": self.epochs}
        return json.dumps(shown, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the canonical form."""
        return hashlib.sha256(self.json.encode()).digest()

    @property
    def id(self) -> str:
        """The part of the digest that reports carry, in hexadecimal."""
        return self.digest[:DIGEST_BYTES].hex()

    @property
    def choices(self) -> int:
        """How many whole numbers an unknown answer is drawn from: d, or 2^32 for a number."""
        return self.domain.count if self.domain.closed else 1 << 32

    def __str__(self) -> str:
        return f"{self.name} (epoch {self.epoch}): {self.protocol.name}, ε ≤ {self.epsilon}, task {self.id}"


def _calibrate(protocol: str, domain: Domain, epsilon: Exact, buckets: int) -> Protocol:
    if protocol == "sue":
        return UnaryEncoding.symmetric(epsilon, domain.count)
    if protocol in FREQUENCY:
        return FREQUENCY[protocol].for_epsilon(epsilon, domain.count)
    if protocol == "hash":
        _refuse_numbers(domain)
        return LocalHashing.for_epsilon(epsilon, key_words=1 if domain.closed else 2)
    if protocol in NUMBER:
        _want_numbers(domain)
        return NUMBER[protocol].for_epsilon(epsilon)
    if protocol == "wave":
        return SquareWave.for_epsilon(epsilon, _wave_buckets(domain, buckets))
    if protocol == "rappor":
        _want_open(domain)
        return Rappor.for_epsilon(epsilon)
    raise ParameterError("protocol", "is not a known one", f"Use one of {', '.join(sorted(list_protocols()))}.")


def _read_protocol(name: object, domain: Domain, given: Mapping[str, object]) -> Protocol:
    if not isinstance(name, str) or name not in list_protocols() - {"sue"}:
        raise ParameterError("protocol", "is not a known one", _FIX)
    if name in FREQUENCY:
        return FREQUENCY[name].read(given, domain.count)
    if name == "hash":
        _refuse_numbers(domain)
        return LocalHashing.read(given, 1 if domain.closed else 2)
    if name in NUMBER:
        _want_numbers(domain)
        return NUMBER[name].read(given)
    if name == "wave":
        wave = SquareWave.read(given)
        if wave.buckets != _wave_buckets(domain, wave.buckets):
            raise ParameterError("parameters.buckets", "must be the size of the domain", _FIX)
        return wave
    _want_open(domain)
    return Rappor.read(given)


def list_protocols() -> set[str]:
    """The names that a task may carry, and "sue"."""
    return {*FREQUENCY, *NUMBER, "hash", "wave", "rappor", "sue"}


def _wave_buckets(domain: Domain, buckets: int) -> int:
    if domain.open:
        raise ParameterError("domain", "must be ordered for a square wave", "Give size, labels or (low, high).")
    return domain.count if domain.closed else buckets


def _want_numbers(domain: Domain) -> None:
    if not domain.numeric:
        raise ParameterError("domain", "must be a range of numbers for this protocol", "Give (low, high).")


def _refuse_numbers(domain: Domain) -> None:
    if domain.numeric:
        raise ParameterError("domain", "must not be a range of numbers for this protocol", "Use hybrid or wave.")


def _want_open(domain: Domain) -> None:
    if not domain.open:
        raise ParameterError("domain", "must be open for RAPPOR", "Give Domain(open=True).")


_LOSS = re.compile(r"(ln\()?(\d{1,400})(?:/(\d{1,400}))?(\))?")


def _read_loss(text: object) -> Exact:
    """A loss as tasks write it: 1, 1/2 or ln(3)."""
    if not isinstance(text, str):
        raise ParameterError("epsilon", "must be a text like 1, 1/2 or ln(3)", _FIX)
    match = _LOSS.fullmatch(text)
    if match is None or bool(match[1]) != bool(match[4]) or (match[3] is not None and int(match[3]) == 0):
        raise ParameterError("epsilon", "must be written like 1, 1/2 or ln(3)", _FIX)
    value = Fraction(int(match[2]), int(match[3] or 1))
    if str(value) != text.removeprefix("ln(").removesuffix(")"):
        raise ParameterError("epsilon", "must be in lowest terms", _FIX)
    return read_epsilon(Ln(value) if match[1] else value)
