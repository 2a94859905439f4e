"""What was drawn comes back from the record as it was."""

from __future__ import annotations

import datetime as dt
import json
from fractions import Fraction

import numpy as np
import pytest

from discreet.draw_record import dump_draws, from_plain, load_draws, to_plain
from discreet.engines.engine import Groups
from discreet.entropy import SeededForTestsOnly
from discreet.plan.nodes import Aggregate
from discreet.plan.statistics.definitions import Statistic
from discreet.plan.types import Type, Value
from discreet.release import Plan, draw
from tests.worlds.hospital import COUNT, ask, column
from tests.worlds.prices import PURE, priced


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, Type.DATE),
        (True, Type.BOOLEAN),
        (-(2**63), Type.INTEGER),
        (0.1, Type.REAL),
        ('a"b\\ü', Type.TEXT),
        (dt.date(2030, 1, 2), Type.DATE),
        (dt.datetime.fromisoformat("2030-01-02T03:04:05.000678"), Type.TIMESTAMP),
    ],
)
def test_keys_of_every_type_come_back(value: Value, kind: Type) -> None:
    assert from_plain(json.loads(json.dumps(to_plain(value))), kind) == value


def test_a_draw_comes_back_whole() -> None:
    """Keys, noisy integers, chosen cells and their ends, through JSON and back."""
    median = Aggregate(Statistic.QUANTILE, column("age"), Fraction(1, 2))
    release = priced(ask(COUNT, median, keys=("ward",)), PURE, epsilon=1, ends=True)
    cells = (np.array([30]), np.array([4]))
    drawn = draw(release, Groups(keys=(("A",),), values=((4,),), spreads=((cells,),)), source=SeededForTestsOnly(1))
    plan = Plan((release,))
    ((again,),) = load_draws(json.loads(json.dumps(dump_draws(((drawn,),), [plan]))), [plan])
    assert again.keys == drawn.keys and again.chosen == drawn.chosen and again.ends == drawn.ends
    assert drawn.ends
    assert {p: v.tolist() for p, v in again.measures.items()} == {p: v.tolist() for p, v in drawn.measures.items()}


def test_draws_of_older_records_are_read() -> None:
    """They list every key and have a text for each integer."""
    release = priced(ask(COUNT, keys=("ward",)), PURE, epsilon=1)
    old = {"plans": [[{"keys": [["A"], ["B"]], "measures": {"0": ["4", str(2**70)]}, "chosen": {}}]]}
    ((drawn,),) = load_draws(old, [Plan((release,))])
    assert drawn.keys == (("A",), ("B",)) and drawn.measures[0].tolist() == [4, 2**70]
