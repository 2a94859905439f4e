"""One offer of what is said in a question and beside it."""

from __future__ import annotations

import pytest

from discreet.errors import ParameterError
from discreet.frontends.read_sql import QuestionAndOffer
from discreet.offer import Offer
from discreet.stated_offer import StatedOffer
from tests.worlds.hospital import COUNT, ask

SILENT = {"epsilon": None, "rho": None, "share": None, "delta": None}


def test_what_is_not_said_beside_a_question_may_stand_in_it() -> None:
    """An ε that a text states is kept by the question alone; what is said twice is refused."""
    plain, priced = QuestionAndOffer(ask(COUNT), {}), QuestionAndOffer(ask(COUNT), {"epsilon": 1, "delta": 1e-6})
    beside = StatedOffer(words=SILENT | {"share": 0.1}, level=0.9)
    assert beside.make_offer(plain) == Offer(share=0.1, level=0.9)
    silent = StatedOffer(words=SILENT, ends=True)
    assert silent.given == {}
    assert silent.make_offer(priced) == Offer(epsilon=1, delta=1e-6, alone=True, ends=True)
    assert beside.make_offer(QuestionAndOffer(ask(COUNT), {"delta": 1e-6})).alone is False
    with pytest.raises(
        ParameterError, match=r"said twice, in the question and beside it: epsilon.*Nothing was charged"
    ):
        StatedOffer(words=SILENT | {"epsilon": 2}).make_offer(priced)
