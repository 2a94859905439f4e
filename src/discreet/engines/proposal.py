"""What the values of a text file show about it, proposed to its owner, who gave leave to read them."""

from __future__ import annotations

from collections.abc import Mapping

from discreet.late_dataclass import dataclass
from discreet.plan.csv_form import CsvForm
from discreet.plan.types import Type


@dataclass(frozen=True, slots=True)
class TypeProposal:
    """The form of a file, and the type of each of its columns. ``doubtful`` has columns of dates in either order."""

    form: CsvForm
    types: Mapping[str, Type]
    doubtful: tuple[str, ...] = ()
