"""Heavy hitters: finds the frequent texts of a domain that nobody can list, by their prefixes.

People are divided into groups at random. Group g reports the first g bytes of its answer by local hashing. The server
keeps the most frequent prefixes of one length, and counts only their extensions at the next length. A text is its first
``length`` bytes of UTF-8, filled up with zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from discreet import parameters
from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import ParameterError
from discreet.late_dataclass import dataclass
from discreet.local.domain import Domain, as_text
from discreet.local.estimation import Frequencies, estimate_from_supports
from discreet.local.hashing import LocalHashing, text_keys
from discreet.local.reports import Reports
from discreet.local.survey import Survey
from discreet.local.task import Task

ALPHABET = bytes(range(256))
TEXT_ALPHABET = b"\0 abcdefghijklmnopqrstuvwxyz0123456789-_./@ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, kw_only=True)
class HeavyHitters:
    """A search for texts of at most ``length`` bytes over ``alphabet``, one byte at a time.

    Privacy: that of the survey of its groups.
    Why: the group is drawn by lot, a prefix is a function of the answer, and the search is post-processing.
    Reference: Wang, Li & Jha 2019 (PEM).
    """

    length: int
    alphabet: bytes
    survey: Survey

    @classmethod
    def for_epsilon(
        cls, name: str, *, epsilon: object, length: int = 8, alphabet: bytes = TEXT_ALPHABET, epoch: int = 0
    ) -> HeavyHitters:
        """A search with one group for each length of prefix; bytes outside the alphabet count as zero."""
        parameters.read_whole(length, "length", most=64)
        if not alphabet or len(set(alphabet)) != len(alphabet) or 0 not in alphabet:
            raise ParameterError("alphabet", "must be different bytes, zero among them", "Leave it out.")
        tasks = tuple(
            Task.for_epsilon(f"{name}, first {size}", Domain(open=True), epsilon=epsilon, protocol="hash", epoch=epoch)
            for size in range(1, length + 1)
        )
        return cls(length=length, alphabet=alphabet, survey=Survey(tasks))

    def prefix(self, answer: object, size: int) -> str:
        """The first bytes of an answer, as the text that is hashed."""
        raw = as_text(answer).encode()[: self.length].ljust(self.length, b"\0")
        return bytes(byte if byte in self.alphabet else 0 for byte in raw[:size]).hex()

    def encode(self, answer: object, *, source: EntropySource = SYSTEM) -> bytes:
        """One person's report."""
        return self.survey.encode([self.prefix(answer, size + 1) for size in range(self.length)], source=source)

    def encode_many(self, answers: Sequence[object], *, source: EntropySource = SYSTEM) -> dict[str, Reports]:
        """Reports of many people, by task id."""
        columns = [[self.prefix(answer, size + 1) for answer in answers] for size in range(self.length)]
        return self.survey.encode_many(columns, source=source)

    def find(self, reports: Mapping[str, Reports], *, keep: int = 32, level: float = 0.95) -> Frequencies:
        """The most frequent texts, with their shares and intervals from the last group."""
        parameters.read_whole(keep, "keep", most=1 << 16)
        prefixes = [""]
        found: Frequencies | None = None
        for task in self.survey.tasks:
            candidates = [prefix + f"{byte:02x}" for prefix in prefixes for byte in self._next_bytes(prefix)]
            found = _estimate(task, reports[task.id], candidates, level)
            best = np.argsort(-found.values, kind="stable")[:keep]
            prefixes = [candidates[place] for place in best]
        if found is None:
            raise ParameterError("length", "must be at least one", "Give length=8.")
        names = [bytes.fromhex(prefix).rstrip(b"\0").decode("utf-8", "replace") for prefix in prefixes]
        supports = np.array([found.names.index(prefix) for prefix in prefixes])
        columns = {
            part: getattr(found, part)[supports]
            for part in ("values", "low", "high", "low_all", "high_all", "consistent")
        }
        return Frequencies(names=tuple(names), people=found.people, level=level, **columns)

    def _next_bytes(self, prefix: str) -> bytes:
        """The bytes that may follow: after a text has ended, only zeros."""
        return b"\0" if prefix.endswith("00") else self.alphabet


def _estimate(task: Task, reports: Reports, candidates: list[str], level: float) -> Frequencies:
    protocol = task.protocol
    if not isinstance(protocol, LocalHashing):
        raise ParameterError("task", "must be hashed", "Use HeavyHitters.for_epsilon.")
    supports = protocol.count_key_supports(reports.payload, text_keys(candidates))
    return estimate_from_supports(
        supports, len(reports), float(protocol.p), float(protocol.q), names=candidates, level=level
    )
