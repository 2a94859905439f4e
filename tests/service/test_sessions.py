"""Sessions stand for a token and never for more: they end with it, with a pause, and with the day."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

from discreet.service import sessions
from discreet.service.roles import Role
from discreet.service.served_dataset import ServedDataset
from discreet.service.sessions import IDLE, LINK_LIFE, LONGEST, SessionStore
from tests.service.served import Hospital


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now


def test_a_session_ends_after_a_pause_and_after_its_longest_time(served: Hospital) -> None:
    clock = Clock()
    store = SessionStore(served.service.datasets, clock)
    name = store.sign_in(served.secrets["ana"])
    assert name is not None and store.find(name) is not None
    clock.now += IDLE
    assert store.find(name) is None
    busy = store.sign_in(served.secrets["ana"]) or ""
    end = clock.now + LONGEST
    while clock.now < end:
        assert store.find(busy) is not None
        clock.now += IDLE / 2
    assert store.find(busy) is None


def test_a_session_has_the_rights_of_its_token(served: Hospital) -> None:
    """And none any more once the token is revoked, also if it would be valid again."""
    store = SessionStore(served.service.datasets)
    name = store.sign_in(served.secrets["audit"]) or ""
    found = store.find(name)
    assert found is not None and found[0].token.role is Role.AUDITOR
    served.dataset.tokens.revoke("audit")
    assert store.find(name) is None and store.sign_in(served.secrets["audit"]) is None


def test_names_are_new_and_kept_as_hashes(served: Hospital) -> None:
    store = SessionStore(served.service.datasets)
    names = {store.sign_in(served.secrets["ana"]) or "" for _ in range(5)}
    assert len(names) == 5 and not names & set(store._sessions)
    found = [store.find(name) for name in names]
    assert len({each[1].form_key for each in found if each is not None}) == 5


def test_links_end(served: Hospital) -> None:
    """A link that was not used in time opens nothing and makes no token."""
    clock = Clock()
    store = SessionStore(served.service.datasets, clock)
    code, before = store.make_link("hospital"), len(served.dataset.tokens.list_all())
    clock.now += LINK_LIFE
    assert store.use_link(code) is None and store.use_link("") is None
    assert len(served.dataset.tokens.list_all()) == before
    name = store.use_link(store.make_link("hospital")) or ""
    found = store.find(name)
    assert found is not None and found[0].token.role is Role.OWNER
    assert found[0].token.expires <= datetime.now(UTC) + timedelta(days=1)


def test_memory_is_limited(served: Hospital) -> None:
    """The oldest sessions make room."""
    store = SessionStore(served.service.datasets, most=3)
    names = [store.sign_in(served.secrets["ana"]) or "" for _ in range(5)]
    assert [store.find(name) is not None for name in names] == [False, False, True, True, True]


def test_keys_are_compared_whole() -> None:
    assert sessions.is_same_key("ab", "ab")
    assert not any(sessions.is_same_key(given, "ab") for given in ("", "a", "abc", "AB", "é", "\udce9"))


def test_a_session_turns_between_the_datasets_of_its_tokens(served: Hospital, hospital: Path, tmp_path: Path) -> None:
    """And to no other one. It lasts no longer than the first of them, and ends with any token that is revoked."""
    folder = Path(
        shutil.copytree(
            hospital.parent, tmp_path / "clinic", ignore=shutil.ignore_patterns("hospital.[!t]*", "*.tokens")
        )
    )
    book = folder / "hospital.toml"
    book.write_text(book.read_text().replace('name = "hospital"', 'name = "clinic"'))
    clinic = ServedDataset(book)
    try:
        both = {**served.service.datasets, "clinic": clinic}
        clock = Clock()
        store = SessionStore(both, clock)
        _, secret = clinic.tokens.create(name="ana", role=Role.AUDITOR)
        first = store.sign_in(served.secrets["ana"]) or ""
        assert not store.turn(first, "clinic") and not store.turn("nobody", "hospital")
        found = store.find(first)
        assert found is not None
        clock.now += IDLE / 2
        name = store.sign_in(secret, beside=found[1]) or ""
        assert _look(store, name) == ("clinic", Role.AUDITOR)
        assert store.turn(name, "hospital") and _look(store, name) == ("hospital", Role.ANALYST)
        assert not store.turn(name, "nowhere") and _look(store, first) == ("hospital", Role.ANALYST)
        for _ in range(22):
            clock.now += IDLE / 2
            assert store.find(name) is not None
        clock.now += IDLE / 2
        assert store.find(name) is None  # twelve hours after the first one
        named = store.sign_in_named("ana") or ""
        assert _look(store, named) == ("hospital", Role.ANALYST) and store.turn(named, "clinic")
        clinic.tokens.revoke("ana")
        assert store.find(named) is None and not store.turn(named, "hospital")
    finally:
        clinic.close()


def _look(store: SessionStore, name: str) -> tuple[str, Role]:
    found = store.find(name)
    assert found is not None
    return found[0].dataset.name, found[0].token.role
