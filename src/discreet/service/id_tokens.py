"""Reads the ID token of an OpenID provider: who signed in, if the provider says so to us, now, and for this sign-in.

Checked are the signature (RS256 or ES256 alone, with a key of the provider's own list), the issuer, the audience, the
end, and the nonce that was sent with this very sign-in. Everything else is refused in the same words.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.hashes import SHA256

from discreet.late_dataclass import dataclass

_LONGEST = 20_000
_SKEW = 60
_P256_BYTES = 32
_LEAST_RSA_BITS = 2048


class IdTokenRefused(Exception):
    """The token does not say who signed in; the words are for the server's own log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedToken:
    """What an ID token must say."""

    issuer: str
    client: str
    nonce: str
    now: float


def read_id_token(token: str, keys: Sequence[Mapping[str, Any]], expected: ExpectedToken) -> dict[str, Any]:
    """The claims of a token that holds."""
    head, payload, signature = _split(token)
    signed = token.rpartition(".")[0].encode()
    key = _find_key(head, keys)
    _check_signature(head["alg"], key, signed, signature)
    claims = _read_object(payload)
    _check_claims(claims, expected)
    return claims


def _split(token: str) -> tuple[dict[str, Any], bytes, bytes]:
    parts = token.split(".")
    if len(parts) != 3 or len(token) > _LONGEST:
        raise IdTokenRefused("no signed token")
    head, payload, signature = (decode(part) for part in parts)
    return _read_object(head), payload, signature


def decode(text: str) -> bytes:
    """Bytes from base64url without padding."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise IdTokenRefused("no base64url") from None


def _read_object(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise IdTokenRefused("no JSON") from None
    if not isinstance(found, dict):
        raise IdTokenRefused("no JSON object")
    return found


def _find_key(head: Mapping[str, Any], keys: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The one key of the provider that the token names. A key inside the token is never used."""
    kind = {"RS256": "RSA", "ES256": "EC"}.get(str(head.get("alg")))
    named = head.get("kid")
    usable = [key for key in keys if kind is not None and key.get("kty") == kind and key.get("use", "sig") == "sig"]
    fits = [key for key in usable if named in (None, key.get("kid"))]
    if len(fits) != 1:
        raise IdTokenRefused("not one key of the provider fits")
    return fits[0]


def _check_signature(algorithm: str, key: Mapping[str, Any], signed: bytes, signature: bytes) -> None:
    try:
        if algorithm == "RS256":
            numbers = rsa.RSAPublicNumbers(e=_read_number(key, "e"), n=_read_number(key, "n"))
            if numbers.n.bit_length() < _LEAST_RSA_BITS:
                raise IdTokenRefused("a weak key")
            numbers.public_key().verify(signature, signed, padding.PKCS1v15(), SHA256())
            return
        if len(signature) != 2 * _P256_BYTES or key.get("crv") != "P-256":
            raise IdTokenRefused("no signature of the curve")
        point = ec.EllipticCurvePublicNumbers(_read_number(key, "x"), _read_number(key, "y"), ec.SECP256R1())
        halves = (signature[:_P256_BYTES], signature[_P256_BYTES:])
        encoded = utils.encode_dss_signature(*(int.from_bytes(half, "big") for half in halves))
        point.public_key().verify(encoded, signed, ec.ECDSA(SHA256()))
    except (InvalidSignature, ValueError):
        raise IdTokenRefused("the signature does not hold") from None


def _read_number(key: Mapping[str, Any], name: str) -> int:
    return int.from_bytes(decode(str(key.get(name, ""))), "big")


def _check_claims(claims: Mapping[str, Any], expected: ExpectedToken) -> None:
    audience = claims.get("aud")
    listed = audience if isinstance(audience, list) else [audience]
    ends = claims.get("exp")
    if claims.get("iss") != expected.issuer:
        raise IdTokenRefused("another issuer")
    if expected.client not in listed or (len(listed) > 1 and claims.get("azp") != expected.client):
        raise IdTokenRefused("another audience")
    if isinstance(ends, bool) or not isinstance(ends, int | float) or ends <= expected.now - _SKEW:
        raise IdTokenRefused("it has ended")
    if not expected.nonce or claims.get("nonce") != expected.nonce:
        raise IdTokenRefused("another sign-in")
