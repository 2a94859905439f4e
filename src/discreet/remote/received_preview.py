"""Previews from what a server tells of them: they look and count as those at home. The plan stays on the server."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from discreet.computation_preview import ComputationPreview
from discreet.error_curve import ColumnError, CurvePoint, format_error
from discreet.exact import decimal
from discreet.late_dataclass import dataclass
from discreet.plan.catalog import Catalog
from discreet.plan.types import Type
from discreet.preview import BatchPreview, ColumnPreview, Preview
from discreet.privacy import Budget, Loss
from discreet.release import Plan
from discreet.remote.received_answer import find_loss


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedPreview(Preview):
    """A preview that a server made. ``plan`` is empty: what is shown comes from the document."""

    document: Mapping[str, Any]
    catalog: Catalog

    @property
    def loss(self) -> Loss:
        """What the question would cost if it were not on record."""
        return find_loss(self.document["mechanisms"], self.catalog)

    @property
    def cost(self) -> str:
        """The cost in words."""
        return str(self.document["cost"])

    @property
    def columns(self) -> tuple[ColumnPreview, ...]:
        """Every column that is not a key."""
        return tuple(map(_read_column, self.document["columns"]))

    def _list_columns(self) -> list[tuple[str, Type]]:
        return [(name, Type(kind)) for name, kind in self.document["schema"].items()]

    @property
    def keys(self) -> str:
        """Which groups there will be."""
        return str(self.document["keys"])

    @property
    def other_noise(self) -> tuple[str, ...]:
        """The errors that the same offer would buy with the other kind of noise."""
        return tuple(self.document["other_noise"])

    @property
    def level(self) -> Fraction:
        """The confidence of the errors that are shown."""
        return decimal(self.document["level"])

    @property
    def protects(self) -> str:
        """Who is protected, and which neighbours are compared."""
        return f"one {self.catalog.unit.column or 'row'} ({self.catalog.neighbours})"

    def list_plan_facts(self) -> list[tuple[str, str]]:
        """Which groups there will be, and what limits them and their intervals."""
        titled = (("chosen", "chosen"), ("limit", "limits"), ("clamped", "clamped"))
        lines = [(title, line) for title, word in titled for line in self.document[word]]
        return [("groups", self.keys), *lines, ("interval", str(self.document["interval"]))]

    def to_dict(self) -> dict[str, Any]:
        """The preview as plain JSON values."""
        return dict(self.document)

    # Without this line the dataclass would make a repr of its own.
    __repr__ = Preview.__str__


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedComputation(ComputationPreview):
    """A preview of a computation that a server made."""

    document: Mapping[str, Any]

    @property
    def cost(self) -> str:
        """The cost in words."""
        return str(self.document["cost"])

    def _list_columns(self) -> list[tuple[str, Type]]:
        return [(name, Type(kind)) for name, kind in self.document["schema"].items()]

    def to_dict(self) -> dict[str, Any]:
        """The preview as plain JSON values."""
        return dict(self.document)

    __repr__ = ComputationPreview.__str__


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedBatchPreview(BatchPreview):
    """A preview of a batch that a server made. ``loss`` adds up all questions; a fixed batch may cost less."""

    document: Mapping[str, Any]

    @property
    def cost(self) -> str:
        """What all of them cost together."""
        return str(self.document["cost"])

    def to_dict(self) -> dict[str, Any]:
        """The preview as plain JSON values."""
        return dict(self.document)

    __repr__ = BatchPreview.__str__


def read_preview(document: Mapping[str, Any], budget: Budget, catalog: Catalog) -> Preview:
    """The preview of a question, or of a computation over several."""
    terms = _read_terms(document, budget)
    if "computed" in document:
        each = tuple(_read_one(one, budget, catalog) for one in document["questions"])
        whole = _add_losses(document["questions"], catalog) if each else None
        return ReceivedComputation(
            plan=Plan(()), each=each, whole=whole, sql=document["computed"], outputs=(), document=document, **terms
        )
    return _read_one(document, budget, catalog)


def read_batch_preview(document: Mapping[str, Any], budget: Budget, catalog: Catalog) -> BatchPreview:
    """The preview of several questions under one charge."""
    return ReceivedBatchPreview(
        each=tuple(_read_one(one, budget, catalog) for one in document["questions"]),
        loss=_add_losses(document["questions"], catalog),
        document=document,
        **_read_terms(document, budget),
    )


def _read_one(document: Mapping[str, Any], budget: Budget, catalog: Catalog) -> ReceivedPreview:
    curve = tuple(map(_read_point, document.get("curve", ())))
    terms = _read_terms(document, budget)
    return ReceivedPreview(plan=Plan(()), curve=curve, document=document, catalog=catalog, **terms)


def _read_terms(document: Mapping[str, Any], budget: Budget) -> dict[str, Any]:
    return {
        "budget": budget,
        "fits": document["fits"],
        "remaining": document["remaining"],
        "nearest": document["nearest"],
        "answered": document["already_answered"],
    }


def _add_losses(questions: list[Mapping[str, Any]], catalog: Catalog) -> Loss:
    return find_loss([event for question in questions for event in question["mechanisms"]], catalog)


def _read_column(column: Mapping[str, Any]) -> ColumnPreview:
    by_size = tuple((int(size), error) for size, error in column["error_by_size"].items())
    ranks = (column.get(word) for word in ("error_in_rank", "usual_error_in_rank", "ends_in_rank"))
    return ColumnPreview(column["name"], column["what"], column["error"], by_size, *ranks)


def _read_point(point: Mapping[str, Any]) -> CurvePoint:
    errors = (
        ColumnError(name, "–" if size is None else f"± {format_error(float(size))}", size)
        for name, size in point["errors"].items()
    )
    return CurvePoint(decimal(float(point["share"])), point["cost"], point["noise"], tuple(errors))
