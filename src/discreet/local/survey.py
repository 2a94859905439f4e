"""Surveys of several questions: each person draws one question at random and spends the whole loss on it.

With m questions the error grows with √m; splitting the loss instead would make it grow with m. The question that was
drawn reveals nothing about the answers. The hierarchy for ranges and the search for heavy hitters are surveys too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from discreet.entropy import SYSTEM, EntropySource
from discreet.errors import ParameterError
from discreet.exact import Ln
from discreet.late_dataclass import dataclass
from discreet.local.client import encode, encode_many
from discreet.local.reports import Reports
from discreet.local.task import Task
from discreet.local.words import pick


@dataclass(frozen=True)
class Survey:
    """Several tasks, of which each person answers one.

    Privacy: ε-private for each respondent, under replace of all their answers, with the largest loss of a task.
    Why: the lot does not depend on the answers, and given the lot only one answer is used.
    Reference: Nguyên, Xiao, Yang et al. 2016; Wang, Xiao, Yang et al. 2019, §4.
    """

    tasks: tuple[Task, ...]

    def __post_init__(self) -> None:
        if not self.tasks or len({task.digest for task in self.tasks}) != len(self.tasks):
            raise ParameterError("tasks", "must be at least one, and all different", "Give each its own name.")
        if any(task.longitudinal for task in self.tasks):
            fix = "Use Person.report for each task: over time, new random draws would answer them all."
            raise ParameterError("tasks", "must not be longitudinal", fix)

    @property
    def loss(self) -> Ln:
        """What one report costs its sender."""
        return max(task.loss for task in self.tasks)

    def encode(self, answers: Sequence[object], *, source: EntropySource = SYSTEM) -> bytes:
        """One report, on a question that is drawn at random."""
        self._check_length(len(answers))
        lot = int(pick(source.words(1), len(self.tasks))[0])
        return encode(self.tasks[lot], answers[lot], source=source)

    def encode_many(
        self, answers: Sequence[Sequence[object] | npt.NDArray[np.generic]], *, source: EntropySource = SYSTEM
    ) -> dict[str, Reports]:
        """Reports of many people by task id, from one column of answers for each task."""
        self._check_length(len(answers))
        columns = [np.asarray(column) for column in answers]
        lots = pick(source.words(len(columns[0])), len(self.tasks))
        return {
            task.id: encode_many(task, columns[place][lots == place], source=source)
            for place, task in enumerate(self.tasks)
        }

    def _check_length(self, count: int) -> None:
        if count != len(self.tasks):
            raise ParameterError("answers", "must be one for each task", "Give None where there is no answer.")


def attributes(domains: Mapping[str, object], *, epsilon: object, n: int, epoch: int = 0) -> Survey:
    """A survey over named questions, each by the protocol that ``choose`` finds for its share of the people."""
    from discreet.local.protocol_choice import choose

    share = max(1, n // max(1, len(domains)))
    return Survey(
        tuple(choose(domain, epsilon=epsilon, n=share).task(name, epoch=epoch) for name, domain in domains.items())
    )
