"""Signing in with a provider that the tests run: who it names gets the session of their token, and nobody else any."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import UsageError
from discreet.service.oidc import PENDING_SECONDS, OidcProvider, OidcSettings, read_settings
from discreet.service.pages.site import Site
from discreet.service.roles import Role
from discreet.service.sessions import SessionStore
from tests.service.pages.visitors import Seen, Visitor
from tests.service.provider import CLIENT, SECRET, Provider, run_provider
from tests.service.served import Hospital

REDIRECT = "http://127.0.0.1:1/oidc/callback"


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    """One provider for all tests."""
    with run_provider() as running:
        yield running


def make_provider(provider: Provider, **words: Any) -> OidcProvider:
    settings = {"issuer": provider.issuer, "client_id": CLIENT, "client_secret": SECRET, "redirect": REDIRECT}
    clock = words.pop("clock", None)
    made = OidcSettings(**{**settings, **words})
    return OidcProvider(made) if clock is None else OidcProvider(made, clock)


def come_back(visitor: Visitor, provider: Provider, **words: str) -> Seen:
    """To the provider and back; words replace what the browser brings."""
    gone = visitor.get("/oidc")
    assert (
        gone.status == 303 and "SameSite=Lax" in gone.headers["Set-Cookie"] and "HttpOnly" in gone.headers["Set-Cookie"]
    )
    back = {**provider.visit(gone.headers["Location"]), **words}
    return visitor.get(f"/oidc/callback?code={back['code']}&state={back['state']}")


def test_who_has_a_token_of_their_name_gets_its_session(served: Hospital, provider: Provider) -> None:
    """With the role of the token; revoked, the session ends; without a token there is none."""
    site = Site(
        service=served.service, sessions=SessionStore(served.service.datasets), oidc=make_provider(provider)
    )  # fmt: skip
    visitor = Visitor(site)
    assert "sign in with your organisation" in visitor.get("/sign-in").text
    assert come_back(visitor, provider).status == 401
    served.dataset.tokens.create(name="ana@example.org", role=Role.AUDITOR)
    made = come_back(visitor, provider)
    assert made.status == 200 and "SameSite=Strict" in made.headers["Set-Cookie"] and "url=/dataset" in made.text
    assert visitor.get("/audit").status == 200 and visitor.get("/owner").status == 403
    served.dataset.tokens.revoke("ana@example.org")
    assert visitor.get("/audit").headers["Location"] == "/sign-in"
    lines = served.dataset.access.read()
    assert [line["kind"] for line in lines if line["route"] == "sign-in"] == ["refused", "signed-in"]


def test_a_way_back_that_is_not_ones_own_is_refused(served: Hospital, provider: Provider) -> None:
    """Another state, a code that was used, another browser, or no cookie: session fixation and CSRF of the sign-in."""
    served.dataset.tokens.create(name="ana@example.org", role=Role.ANALYST)
    site = Site(
        service=served.service, sessions=SessionStore(served.service.datasets), oidc=make_provider(provider)
    )  # fmt: skip
    for words in ({"state": "0" * 64}, {"code": "code-x"}, {"state": ""}):
        visitor = Visitor(site)
        assert come_back(visitor, provider, **words).status == 401
        assert visitor.get("/dataset").headers["Location"] == "/sign-in"
    victim, attacker = Visitor(site), Visitor(site)
    back = provider.visit(attacker.get("/oidc").headers["Location"])
    path = f"/oidc/callback?code={back['code']}&state={back['state']}"
    victim.get("/oidc")
    assert victim.get(path).status == 401
    assert attacker.get(path).status == 401  # the attempt used it up


def test_what_the_provider_says_must_hold(provider: Provider) -> None:
    """An address that is not verified, a missing claim, another issuer, a wrong secret, too long a time."""
    now = [1000.0]
    usual = dict(provider.claims)

    def sign_in(client: OidcProvider) -> str | None:
        address, state = client.begin()
        return client.finish(**provider.visit(address), kept=state)

    try:
        assert sign_in(make_provider(provider)) == "ana@example.org"
        assert sign_in(make_provider(provider, client_secret="wrong")) is None  # noqa: S106  # of a test
        provider.claims = {"email": "ana@example.org", "email_verified": "yes"}
        assert sign_in(make_provider(provider)) is None
        assert sign_in(make_provider(provider, claim="sub")) == "1"
        provider.claims = {"email": ["ana@example.org"], "email_verified": True}
        assert sign_in(make_provider(provider)) is None
    finally:
        provider.claims = usual
    late = make_provider(provider, clock=lambda: now[0])
    address, state = late.begin()
    now[0] += PENDING_SECONDS
    assert late.finish(**provider.visit(address), kept=state) is None
    with pytest.raises(UsageError, match="another issuer"):
        make_provider(provider, issuer=f"{provider.issuer}/").begin()


def test_settings_are_private_and_whole(tmp_path: Path) -> None:
    """A file that others can read, a missing or unknown word, and an address without TLS are refused."""
    file = tmp_path / "oidc.toml"
    good = 'issuer = "https://id.example"\nclient_id = "a"\nclient_secret = "b"\nredirect = "https://c.example/oidc/callback"\n'
    file.write_text(good)
    file.chmod(0o644)
    with pytest.raises(UsageError, match="chmod"):
        read_settings(file)
    file.chmod(0o600)
    assert read_settings(file).claim == "email"
    for wrong in (
        good.replace("https://id", "http://id"),
        good.replace("client_id", "client"),
        "x = [",
        good + "claim = 1",
    ):
        file.write_text(wrong)
        with pytest.raises(UsageError):
            read_settings(file)
