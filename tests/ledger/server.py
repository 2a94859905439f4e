"""A PostgreSQL of the tests' own, where there is one; otherwise the reason to skip."""

from __future__ import annotations

import pytest

from tests.ledger.charges import Opener


def opener() -> Opener:
    pytest.skip("PostgreSQL store: not there yet")
