"""Tokens: shown once, kept as a hash, refused from the moment at which they end or are revoked."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from discreet.errors import ParameterError, UsageError
from discreet.service.roles import Role
from discreet.service.tokens import PREFIX, TokenStore, hash_secret, make_secret, tokens_path_of
from tests.cli.commands import Run


@pytest.fixture
def store(tmp_path: Path) -> TokenStore:
    return TokenStore(tmp_path / "hospital.tokens")


def test_a_token_is_found_by_its_secret_alone(store: TokenStore) -> None:
    made, secret = store.create(name="ana", role=Role.ANALYST, project="beds", per_query=Fraction(1, 3))
    assert store.find(secret) == made
    assert (made.project, made.per_query) == ("beds", Fraction(1, 3))
    for wrong in ("", made.id, made.name, hash_secret(secret), secret[:-1], secret + "A", secret.upper(), "\udcff"):
        assert store.find(wrong) is None


def test_secrets_are_256_random_bits() -> None:
    secrets = {make_secret() for _ in range(1000)}
    assert len(secrets) == 1000
    assert {len(secret) for secret in secrets} == {len(PREFIX) + 43}


def test_the_file_opens_nothing_and_is_private(store: TokenStore, tmp_path: Path) -> None:
    _, secret = store.create(name="ana", role=Role.OWNER)
    for file in tmp_path.iterdir():
        assert secret.removeprefix(PREFIX).encode() not in file.read_bytes()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert hash_secret(secret).encode() in (tmp_path / "hospital.tokens").read_bytes()


def test_a_revoked_token_is_refused_at_once_also_by_others_who_have_the_file_open(tmp_path: Path) -> None:
    server, owner = TokenStore(tmp_path / "t.tokens"), TokenStore(tmp_path / "t.tokens")
    made, secret = owner.create(name="ana", role=Role.ANALYST)
    _, other = owner.create(name="ben", role=Role.ANALYST)
    assert server.find(secret) is not None
    owner.revoke(made.id)
    assert server.find(secret) is None
    assert server.find(other) is not None
    with pytest.raises(UsageError, match="no such token"):
        owner.revoke(made.id)


def test_revoking_a_name_takes_all_of_its_tokens(store: TokenStore) -> None:
    secrets = [store.create(name="ana", role=Role.ANALYST)[1] for _ in range(3)]
    assert len(store.revoke("ana")) == 3
    assert [store.find(secret) for secret in secrets] == [None] * 3


def test_a_token_ends_at_its_time(tmp_path: Path) -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    store = TokenStore(tmp_path / "t.tokens", lambda: now[0])
    _, secret = store.create(name="ana", role=Role.ANALYST, life=timedelta(days=1))
    now[0] += timedelta(days=1) - timedelta(microseconds=1)
    assert store.find(secret) is not None
    now[0] += timedelta(microseconds=1)
    assert store.find(secret) is None


@pytest.mark.parametrize(
    "wrong",
    [{"name": ""}, {"name": " ana"}, {"name": "a\nb"}, {"name": "a" * 101}, {"project": " "}, {"life": timedelta(0)},
     {"life": timedelta(days=4000)}, {"per_query": Fraction(0)}],
)  # fmt: skip
def test_wrong_words_are_refused_before_a_file_is_made(
    store: TokenStore, tmp_path: Path, wrong: dict[str, object]
) -> None:
    with pytest.raises(ParameterError):
        store.create(**{"name": "ana", "role": Role.ANALYST, **wrong})  # type: ignore[arg-type]  # on purpose
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.tokens").write_text("name = 'hospital'\n" * 100)
    with pytest.raises(UsageError, match="cannot be used as a file of tokens"):
        TokenStore(tmp_path / "t.tokens").find("x")


def test_the_way_of_an_owner_on_the_command_line(hospital: Path, run: Run) -> None:
    code, out, err = run("token", "create", hospital, "--name", "ana", "--per-query", "0.5")
    secret = out.strip()
    assert code == 0 and secret not in err and "ana (analyst)" in err
    store = TokenStore(tokens_path_of(hospital))
    made = store.find(secret)
    assert made is not None and made.per_query == Fraction(1, 2)
    code, out, _ = run("token", "list", hospital, "--json")
    (listed,) = json.loads(out)["tokens"]
    assert (listed["id"], listed["state"]) == (made.id, "valid") and secret not in out
    code, out, _ = run("token", "revoke", hospital, "ana")
    assert code == 0 and "revoked" in out
    assert store.find(secret) is None
    assert run("token", "revoke", hospital, "ana")[0] == 2
