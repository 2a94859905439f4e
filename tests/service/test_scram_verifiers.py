"""What is kept of tokens for SCRAM: not the token, nothing that opens anything, and nothing for older tokens."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from discreet.errors import ParameterError
from discreet.service.roles import Role
from discreet.service.scram_verifiers import make_verifier
from discreet.service.tokens import TokenStore


def test_the_file_keeps_a_verifier_and_no_token(tmp_path: Path) -> None:
    store = TokenStore(tmp_path / "x.tokens")
    made, secret = store.create(name="ana", role=Role.ANALYST, offer="epsilon=0.1")
    assert store.find_verifiers("ana") == ((made, make_verifier("ana", secret)),)
    assert store.find_offer(made.id) == "epsilon=0.1"
    assert secret.encode() not in (tmp_path / "x.tokens").read_bytes()
    assert store.find_verifiers("ben") == ()
    store.revoke(made.id)
    assert store.find_verifiers("ana") == ()


def test_a_token_of_before_has_none_and_opens_http_alone(tmp_path: Path) -> None:
    """A file of an earlier version has no table of verifiers."""
    store = TokenStore(tmp_path / "x.tokens")
    made, secret = store.create(name="ana", role=Role.ANALYST)
    with closing(sqlite3.connect(tmp_path / "x.tokens")) as connection, connection:
        connection.execute("DROP TABLE verifiers")
    assert store.find_verifiers("ana") == () and store.find_offer(made.id) == ""
    assert store.find(secret) == made


@pytest.mark.parametrize("offer", ["epsilon", "epsilon=0", "epsilon=x", "price=1", "share=-1", "rho=1/0", "=1"])
def test_an_offer_is_a_cost_in_one_form(tmp_path: Path, offer: str) -> None:
    with pytest.raises(ParameterError):
        TokenStore(tmp_path / "x.tokens").create(name="ana", role=Role.ANALYST, offer=offer)
