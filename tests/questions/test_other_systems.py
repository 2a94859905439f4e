"""Statements as users of other systems write them: each is answered, or refused with a reason and what to write.

tests/fixtures/other_systems.txt has them, over the demo's codebook, after the manuals and benchmarks of SmartNoise,
OpenDP, GoogleSQL, Tumult, Qrlew, Chorus and TPC-H. A line that begins with + is answered, one with - is refused.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import discreet

FILE = Path(__file__).parent.parent / "fixtures" / "other_systems.txt"
STATEMENTS = [line for line in FILE.read_text().splitlines() if line[:2] in ("+ ", "- ")]

# What a refusal says that knows nothing better.
EMPTY = ("lists everything that is", "Write the plain form", "This was not expected here")


def test_every_statement_is_answered_or_refused_with_a_fix(hospital: Path) -> None:
    assert len(STATEMENTS) >= 180
    with discreet.open(hospital) as curator:
        for line in STATEMENTS:
            mark, text = line[0], line[2:]
            share = None if "OPTIONS" in text else 0.01
            if mark == "+":
                assert curator.preview(text, share=share).schema.names, text
                continue
            with pytest.raises(discreet.DiscreetError, match=r"Nothing was charged\.$") as caught:
                curator.preview(text, share=share)
            said = str(caught.value)
            assert not any(words in said for words in EMPTY), f"{text}\n{said}"
