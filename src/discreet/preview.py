"""What a question would cost and how wrong its answer would be, from public facts alone. Free, and nothing is read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any

from discreet.accounting import cost_words, events
from discreet.accounting.events import to_exact
from discreet.answer_rows import list_columns
from discreet.bounding.recipes import AggregateRecipe
from discreet.error_curve import ColumnError, CurvePoint, draw_curve, format_error
from discreet.errors import InternalError
from discreet.exact import float_up
from discreet.explanation import BEYOND, describe_grouping, list_chosen, list_clamped, list_limits
from discreet.html_tables import make_facts, make_table
from discreet.late_dataclass import dataclass
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.quantiles.cells import CellMode
from discreet.noise_intervals import find_measured
from discreet.plan.arrow import load_arrow_types
from discreet.plan.expressions import Expression, ReleasedValue
from discreet.plan.statistics.definitions import FirstMomentBasis
from discreet.plan.statistics.table import STATISTICS
from discreet.plan.types import Type
from discreet.privacy import Budget, Loss
from discreet.release import KeyRule, Plan, Release, format_level
from discreet.sized_error import find_error, read_sized

if TYPE_CHECKING:
    import pyarrow

# Numbers of values in a group for which the error of a mean is shown, since the real number is not public.
SIZES = (100, 1_000, 10_000)
FREE = "nothing was charged, no data was read"


@dataclass(frozen=True, slots=True)
class ColumnPreview:
    """One column of the answer: what it is, and its error at the level: a number, by group sizes, or in ranks."""

    name: str
    what: str
    error: float | None
    by_size: tuple[tuple[int, float], ...] = ()
    rows: int | None = None
    usual: int | None = None
    ends: int | None = None

    def words(self) -> str:
        """The error for people: ``± 12``."""
        if self.usual is not None:
            ends = "" if self.ends is None else f"; interval of about ± {self.ends:,} rows in rank"
            return f"± {self.usual:,} rows in rank if values are spread evenly, ± {self.rows:,} at most{ends}"
        if self.rows is not None:
            return f"± {self.rows:,} rows"
        if self.error is not None:
            return f"± {format_error(self.error)}"
        if self.by_size:
            return ", ".join(f"± {format_error(error)} of {size:,}" for size, error in self.by_size)
        return "from the others"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Cost, mechanisms and expected errors of a question, before anything is spent."""

    plan: Plan
    budget: Budget
    fits: bool
    remaining: str
    alternatives: tuple[Plan, ...] = ()
    nearest: str = ""
    """Where it does not fit: the nearest that does, in words, if there is one."""
    curve: tuple[CurvePoint, ...] = ()
    """Error against cost, where it was asked for."""
    answered: bool = False
    """Whether the answer follows from what is on record: then it is free."""
    group_size: Fraction | None = None
    """The size of a group for which an error was wanted; without it, some sizes are shown."""

    @property
    def loss(self) -> Loss:
        """What the question would cost if it were not on record."""
        return self.plan.loss

    @property
    def cost(self) -> str:
        """The cost in the budget's own notion first, and what it means beside it."""
        return cost_words.describe_cost(self.budget, self.loss)

    @property
    def columns(self) -> tuple[ColumnPreview, ...]:
        """Every column that is not a key."""
        return tuple(_make_columns(self.plan, self.group_size))

    @property
    def schema(self) -> pyarrow.Schema:
        """The names and types of the columns that will come, with the ends of intervals (``n_low``, ``n_high``)."""
        import pyarrow as pa

        kinds = load_arrow_types()
        return pa.schema([(name, kinds[kind]) for name, kind in self._list_columns()])

    def _list_columns(self) -> list[tuple[str, Type]]:
        outputs = self.plan.question.outputs
        names, types = [output.name for output in outputs], [output.expression.type for output in outputs]
        return list_columns(names, types, find_measured(self.plan))

    @property
    def keys(self) -> str:
        """Which groups there will be."""
        if len(self.plan.releases) > 1:
            each = "; ".join(
                f"{describe_grouping(release)}, {_describe_groups(release).partition(';')[0]}"
                for release in self.plan.releases
            )
            return f"{len(self.plan.releases)} groupings share the price: {each}"
        return _describe_groups(self.plan.releases[0])

    @property
    def other_noise(self) -> tuple[str, ...]:
        """The errors that the same offer would buy with the other kind of noise, in words."""
        return tuple(
            f"{_name_noise(plan.releases[0])}: {_list_words(_make_columns(plan, self.group_size))}"
            for plan in self.alternatives
        )

    @property
    def level(self) -> Fraction:
        """The confidence of the errors that are shown."""
        return self.plan.level

    @property
    def protects(self) -> str:
        """Who is protected, and which neighbours are compared."""
        return f"one {self.plan.unit.column or 'row'} ({self.plan.neighbours})"

    def list_plan_facts(self) -> list[tuple[str, str]]:
        """Which groups there will be, and what limits them and their intervals."""
        plan = self.plan
        return [
            ("groups", self.keys),
            *(("chosen", line) for line in list_chosen(plan)),
            *(("limit", line) for line in list_limits(plan)),
            *(("clamped", line) for line in list_clamped(plan)),
            ("interval", BEYOND),
        ]

    def to_dict(self) -> dict[str, Any]:
        """The preview as plain JSON values."""
        return {
            "cost": self.cost,
            "loss": self.budget.loss_to_dict(self.loss),
            "fits": self.fits,
            "nearest": self.nearest,
            "already_answered": self.answered,
            "remaining": self.remaining,
            "other_noise": list(self.other_noise),
            "level": float(self.plan.level),
            "columns": [
                {"name": c.name, "what": c.what, "error": c.error, "error_by_size": dict(c.by_size)}
                | ({} if c.rows is None else {"error_in_rank": c.rows, "usual_error_in_rank": c.usual})
                | ({} if c.ends is None else {"ends_in_rank": c.ends})
                for c in self.columns
            ],
            "keys": self.keys,
            "schema": {name: str(kind) for name, kind in self._list_columns()},
            "mechanisms": [events.dump(event) for event in self.plan.events],
            "chosen": list_chosen(self.plan),
            "clamped": list_clamped(self.plan),
            "limits": list_limits(self.plan),
            "interval": BEYOND,
            **({"curve": [point.to_dict() for point in self.curve]} if self.curve else {}),
        }

    def _list_facts(self) -> list[tuple[str, str]]:
        """Who is protected, what it costs, and what is left."""
        return [
            ("protects", self.protects),
            ("cost", describe_cost(self)),
            ("left", self.remaining),
            *(("instead", words) for words in self.other_noise),
        ]

    def __str__(self) -> str:
        return "\n".join(
            [
                format_columns(self),
                *(f"{title:<8}  {words}" for title, words in self._list_facts()),
                *([f"\n{draw_curve(self.curve)}\n"] if self.curve else []),
                FREE,
            ]
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        curve = f"<pre>{escape(draw_curve(self.curve))}</pre>" if self.curve else ""
        return f"<div>{make_html(self, [*self._list_facts(), ('charged', FREE)])}{curve}</div>"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPreview:
    """Cost and expected errors of several questions that would be asked as one."""

    each: tuple[Preview, ...]
    loss: Loss
    budget: Budget
    fits: bool
    remaining: str
    nearest: str = ""
    answered: bool = False

    @property
    def cost(self) -> str:
        """What all of them cost together."""
        return cost_words.describe_cost(self.budget, self.loss)

    def to_dict(self) -> dict[str, Any]:
        """The preview as plain JSON values."""
        return {
            "cost": self.cost,
            "loss": self.budget.loss_to_dict(self.loss),
            "fits": self.fits,
            "nearest": self.nearest,
            "already_answered": self.answered,
            "remaining": self.remaining,
            "questions": [preview.to_dict() for preview in self.each],
        }

    def __str__(self) -> str:
        parts = [f"question {i}\n{format_columns(preview)}" for i, preview in enumerate(self.each, 1)]
        cost = describe_cost(self)
        parts.append(f"together  {cost}\nleft      {self.remaining}\n{FREE}")
        return "\n\n".join(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [f"<p><b>question {i}</b></p>{make_html(each)}" for i, each in enumerate(self.each, 1)]
        facts = make_facts([("together", describe_cost(self)), ("left", self.remaining), ("charged", FREE)])
        return f"<div>{''.join(parts)}{facts}</div>"


def describe_cost(shown: Preview | BatchPreview) -> str:
    """What would be charged, for people."""
    if shown.answered:
        return "already answered: free"
    if shown.fits:
        return shown.cost
    return f"{shown.cost}: more than is left{f'; {shown.nearest}' if shown.nearest else ''}"


def format_columns(preview: Preview) -> str:
    """The columns of one question, their errors, its groups and what it costs."""
    columns = preview.columns
    width = max(len(text) for text in ("column", *(c.name for c in columns)))
    what = max(len(text) for text in ("measured by", *(c.what for c in columns)))
    return "\n".join(
        [
            f"{'column':<{width}}  {'measured by':<{what}}  noise {format_level(preview.level)}",
            f"{'─' * width}  {'─' * what}  {'─' * 14}",
            *(f"{c.name:<{width}}  {c.what:<{what}}  {c.words()}" for c in columns),
            *(f"{title:<8}  {words}" for title, words in preview.list_plan_facts()),
        ]
    )


def make_html(preview: Preview, facts: Sequence[tuple[str, str]] = ()) -> str:
    """The columns of one question as a table, and facts about them."""
    heads = ["column", "measured by", f"noise {format_level(preview.level)}"]
    rows = [[column.name, column.what, column.words()] for column in preview.columns]
    table = make_table(heads, rows, [False] * 3, [False] * 3) if rows else ""
    return table + make_facts([*preview.list_plan_facts(), *facts])


def make_point(plan: Plan, share: Fraction, budget: Budget, group_size: Fraction | None = None) -> CurvePoint:
    """What a share buys: of a mean the error in a group of middle size, of a quantile or a mode that in rank."""
    errors = tuple(_find_point_error(column) for column in _make_columns(plan, group_size))
    return CurvePoint(share, cost_words.describe_cost(budget, plan.loss), _name_noise(plan.releases[0]), errors)


def _find_point_error(column: ColumnPreview) -> ColumnError:
    if column.by_size:
        size, error = column.by_size[len(column.by_size) // 2]
        return ColumnError(column.name, f"± {format_error(error)} of {size:,}", error)
    if column.rows is not None:
        return ColumnError(column.name, f"± {column.rows:,} rows", float(column.rows))
    return ColumnError(column.name, "–" if column.error is None else f"± {format_error(column.error)}", column.error)


def _describe_groups(release: Release) -> str:
    """Which groups a grouping will have."""
    bounded = release.bounded.bounded
    if not bounded.keys:
        return "one group"
    if bounded.domain is not None:
        return f"{len(bounded.domain):,} public groups; those without rows appear as noisy zeros"
    rule = release.selection
    if rule is None:
        return "no groups"
    half, sure = rule.kept_from(Fraction(1, 2)), rule.kept_from(Fraction(1, 20))
    named = f"groups from the data: one with {half:,} units is named half of the time, with {sure:,} in 95 of 100"
    return f"{named}; naming costs δ {_find_key_delta(rule):.3g}{_describe_joint(release)}"


def _find_key_delta(rule: KeyRule) -> float:
    """The δ of naming keys, rounded up."""
    return float_up(sum((to_exact(e.delta) for e in rule.events if isinstance(e, events.Approximate)), Fraction(0)))


def _describe_joint(release: Release) -> str:
    """What a count that names its key means for its own error."""
    if release.counted is None:
        return ""
    return "; the noisy count itself names them, so intervals near that size are wider"


def _make_columns(plan: Plan, group_size: Fraction | None = None) -> list[ColumnPreview]:
    question, release = plan.question, plan.releases[0]
    found = []
    for output in question.outputs:
        expression = output.expression
        if isinstance(expression, ReleasedValue) and expression.index < len(question.keys):
            continue
        if not isinstance(expression, ReleasedValue):
            by_size = _find_error_in(release, expression, group_size)
            found.append(ColumnPreview(output.name, "arithmetic on released numbers", None, by_size))
            continue
        index = expression.index - len(question.keys)
        estimate = release.bounded.estimates[index]
        if estimate.spread is not None:
            found.append(_preview_choice(plan, output.name, estimate.spread, estimate))
            continue
        found.append(
            ColumnPreview(
                output.name,
                _describe_estimate(release, estimate),
                plan.error(index),
                _find_error_in(release, expression, group_size) or _find_errors_by_size(release, estimate),
            )
        )
    return found


def _list_words(columns: Iterable[ColumnPreview]) -> str:
    return ", ".join(f"{column.name} {column.words()}" for column in columns)


def _preview_choice(plan: Plan, name: str, spread: int, estimate: AggregateRecipe) -> ColumnPreview:
    """A quantile or a mode: what it is, and how far off it is in rows."""
    release = plan.releases[0]
    choice = release.choices[spread]
    parts = 1 << release.bounded.bounded.weight_bits  # a spread counts in parts of rows
    rows = release.rank_error(spread)
    title = STATISTICS[estimate.statistic].title
    if estimate.share is None or isinstance(choice, CellMode):
        return ColumnPreview(name, f"{title}, chosen", None, rows=rows)
    usual = min(rows, math.ceil(choice.usual_error(1 - plan.level) / parts))
    ends = math.ceil(release.ends[spread].reach(estimate.share) / parts) if spread in release.ends else None
    what = f"{float(100 * estimate.share):g} % {title}, chosen{' with its ends' * (ends is not None)}"
    return ColumnPreview(name, what, None, rows=rows, usual=usual, ends=ends)


def _describe_estimate(release: Release, estimate: AggregateRecipe) -> str:
    used = [p for p in (estimate.count, estimate.steps, estimate.squares) if p is not None]
    parts = [p for p in used if p not in release.bounded.public]
    title, kind = STATISTICS[estimate.statistic].title, _name_noise(release)
    if not parts:
        return f"{title}, public and exact"
    beside = " and a public one" if len(parts) < len(used) else ""
    return f"{title} from {len(parts)} noisy {kind} number{'s' * (len(parts) > 1)}{beside}"


def _name_noise(release: Release) -> str:
    pure = any(isinstance(noise, Laplace) for noise in release.noises.values())
    return "Laplace" if pure or not release.noises else "Gaussian"


def _find_errors_by_size(release: Release, estimate: AggregateRecipe) -> tuple[tuple[int, float], ...]:
    """The error of a mean for some group sizes n: that of (S − m·N)/n, at most, for a mean m anywhere in the bounds."""
    basis = STATISTICS[estimate.statistic].basis
    if not isinstance(basis, FirstMomentBasis) or not basis.by_size:
        return ()
    if estimate.steps is None or estimate.count is None:
        raise InternalError("A mean without a sum and a count.")
    measure = release.bounded.bounded.measures[estimate.steps]
    width = measure.last - measure.first
    means = (Fraction(measure.first), Fraction(measure.first + measure.last, 2), Fraction(measure.last))
    worst = max(float(release.bound({estimate.steps: Fraction(1), estimate.count: -mean})) for mean in means)
    return tuple((size, min(worst / size, float(width)) * float(measure.resolution)) for size in SIZES)


def _find_error_in(release: Release, expression: Expression, size: Fraction | None) -> tuple[tuple[int, float], ...]:
    """The error of an average, a ratio or a variance in a group of one size, where that is stated."""
    found = None if size is None else read_sized(release.bounded, expression)
    if found is None or size is None:
        return ()
    return ((round(size), float(find_error(found, release, size))),)
