"""Signing in with an OpenID provider (authorization code with PKCE). The provider says who; a token says what they may.

Whoever signs in gets a session of the valid token that has their name. So roles, caps, ends and revocations are those
of tokens, and a person whom no token names gets nothing. The provider is asked by this server alone: pages stay without
requests to others, but for the visit to the provider's own page.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import threading
import time
import tomllib
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from discreet.errors import UsageError
from discreet.late_dataclass import dataclass
from discreet.service.id_tokens import ExpectedToken, IdTokenRefused, read_id_token
from discreet.service.sessions import is_same_key, make_name

LOG = logging.getLogger("discreet.service")
PENDING_SECONDS = 600.0
MOST_PENDING = 1000
_MOST_BYTES = 1 << 20
_PATIENCE = 10
_WORDS = {"issuer", "client_id", "client_secret", "redirect", "claim"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """What the owner says about the provider. ``claim`` is the claim that is the name of a token."""

    issuer: str
    client_id: str
    client_secret: str
    redirect: str
    claim: str = "email"


def read_settings(path: Path) -> OidcSettings:
    """The settings in a TOML file that nobody else can read."""
    try:
        if path.stat().st_mode & 0o077:
            raise UsageError(f"{path} holds a secret and others can read it: chmod 600 {path}")
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        raise UsageError(f"{path} cannot be read as TOML. It has issuer, client_id, client_secret, redirect.") from None
    texts = all(isinstance(value, str) and value for value in found.values())
    if not texts or not _WORDS - {"claim"} <= set(found) <= _WORDS:
        raise UsageError(f"{path} must have the texts issuer, client_id, client_secret, redirect, and may have claim.")
    made = OidcSettings(**found)
    for address in (made.issuer, made.redirect):
        _check_address(address)
    return made


def _check_address(address: str) -> None:
    """Secrets travel by TLS, or within this machine."""
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")):
        raise UsageError("The addresses of an OpenID provider and of the way back begin with https://.")


class _StayHere(HTTPRedirectHandler):
    """A provider that sends its client elsewhere is not followed: the secret is for it alone."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    verifier: str
    nonce: str
    begun: float


class OidcProvider:
    """One provider, and the sign-ins that are on their way."""

    def __init__(self, settings: OidcSettings, clock: Callable[[], float] = time.time) -> None:
        self._settings, self._clock = settings, clock
        self._lock = threading.Lock()
        self._pending: dict[str, _Pending] = {}
        self._known: Mapping[str, Any] | None = None

    def begin(self) -> tuple[str, str]:
        """The address of the provider's page, and the state that the browser brings back with its cookie."""
        state, verifier, nonce = make_name(), make_name(), make_name()
        now = self._clock()
        with self._lock:
            self._pending = {k: p for k, p in self._pending.items() if now - p.begun < PENDING_SECONDS}
            while len(self._pending) >= MOST_PENDING:
                del self._pending[next(iter(self._pending))]
            self._pending[_hash(state)] = _Pending(verifier=verifier, nonce=nonce, begun=now)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        words = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": self._settings.redirect,
            "scope": "openid email profile",
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return f"{self._find('authorization_endpoint')}?{urlencode(words)}", state

    def finish(self, *, code: str, state: str, kept: str) -> str | None:
        """The name of whoever signed in; None where it does not hold. ``kept`` is the state in the browser's cookie."""
        with self._lock:
            pending = self._pending.pop(_hash(state), None)
        if pending is None or not is_same_key(state, kept) or self._clock() - pending.begun >= PENDING_SECONDS:
            return None
        try:
            return self._read_name(self._fetch_claims(code, pending))
        except (IdTokenRefused, UsageError) as error:
            LOG.error("A sign-in by OpenID was refused: %s", type(error).__name__)
            return None

    def _fetch_claims(self, code: str, pending: _Pending) -> Mapping[str, Any]:
        words = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._settings.redirect,
            "client_id": self._settings.client_id,
            "client_secret": self._settings.client_secret,
            "code_verifier": pending.verifier,
        }
        told = _fetch(self._find("token_endpoint"), urlencode(words).encode())
        keys = _fetch(self._find("jwks_uri")).get("keys", [])
        expected = ExpectedToken(
            issuer=self._settings.issuer, client=self._settings.client_id, nonce=pending.nonce, now=self._clock()
        )
        usable = [key for key in keys if isinstance(key, dict)] if isinstance(keys, list) else []
        return read_id_token(str(told.get("id_token", "")), usable, expected)

    def _read_name(self, claims: Mapping[str, Any]) -> str:
        name = claims.get(self._settings.claim)
        if not isinstance(name, str) or not name:
            raise IdTokenRefused("the claim is missing")
        if self._settings.claim == "email" and claims.get("email_verified") is not True:
            raise IdTokenRefused("the provider has not verified the address")
        return name

    def _find(self, name: str) -> str:
        """An address of the provider, as its own description has it."""
        if self._known is None:
            found = _fetch(f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration")
            if found.get("issuer") != self._settings.issuer:
                raise UsageError("The OpenID provider says that it is another issuer.")
            self._known = found
        address = str(self._known.get(name, ""))
        _check_address(address)
        return address


def _hash(state: str) -> str:
    return hashlib.sha256(state.encode("utf-8", "surrogateescape")).hexdigest()


def _fetch(address: str, body: bytes | None = None) -> dict[str, Any]:
    """A JSON object of the provider."""
    request = Request(address, data=body, headers={"Accept": "application/json"})  # noqa: S310  # https, or loopback
    try:
        with build_opener(_StayHere).open(request, timeout=_PATIENCE) as response:
            if response.status != HTTPStatus.OK:
                raise UsageError("The OpenID provider refuses.")
            found = json.loads(response.read(_MOST_BYTES))
    except (URLError, OSError, ValueError, RecursionError):
        raise UsageError("The OpenID provider does not answer as it should. Sign in with a token.") from None
    if not isinstance(found, dict):
        raise UsageError("The OpenID provider does not answer as it should. Sign in with a token.")
    return found
