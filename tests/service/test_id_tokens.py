"""An ID token holds for its issuer, client, time and sign-in alone, under a key of the provider."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa, utils
from cryptography.hazmat.primitives.hashes import SHA256

from discreet.service.id_tokens import ExpectedToken, IdTokenRefused, read_id_token
from tests.service.provider import CLIENT, Provider, encode

PROVIDER = Provider()
PROVIDER.issuer = "https://id.example"
EXPECTED = ExpectedToken(issuer=PROVIDER.issuer, client=CLIENT, nonce="n", now=time.time())
OTHER = rsa.generate_private_key(65537, 2048)


def read(token: str) -> dict[str, Any]:
    return read_id_token(token, PROVIDER.keys, EXPECTED)


def test_a_token_of_the_provider_holds() -> None:
    assert read(PROVIDER.sign(nonce="n"))["email"] == "ana@example.org"
    assert read(PROVIDER.sign(nonce="n", aud=[CLIENT, "b"], azp=CLIENT))["sub"] == "1"


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "m"},
        {},
        {"nonce": "n", "iss": "https://id.example/"},
        {"nonce": "n", "aud": "b"},
        {"nonce": "n", "aud": [CLIENT, "b"]},
        {"nonce": "n", "aud": None},
        {"nonce": "n", "exp": time.time() - 100},
        {"nonce": "n", "exp": None},
        {"nonce": "n", "exp": "2099"},
        {"nonce": "n", "exp": True},
    ],
)
def test_other_claims_are_refused(claims: dict[str, Any]) -> None:
    with pytest.raises(IdTokenRefused):
        read(PROVIDER.sign(**claims))


def test_other_signatures_are_refused() -> None:
    """Of another key, of none, of a key that the token brings, under another algorithm, or over other claims."""
    good = PROVIDER.sign(nonce="n")
    head, payload, signature = good.split(".")
    changed = encode(json.dumps({"iss": PROVIDER.issuer, "aud": CLIENT, "exp": 9e9, "nonce": "n"}).encode())
    none = encode(b'{"alg": "none"}')
    wrong = [
        PROVIDER.sign(nonce="n", key=OTHER),
        PROVIDER.sign(nonce="n", algorithm="HS256"),
        PROVIDER.sign(nonce="n", algorithm="ES256"),
        f"{head}.{changed}.{signature}", f"{none}.{payload}.", f"{none}.{payload}.{signature}", f"{head}.{payload}.",
        f"{head}.{payload}", "", "...", "é.é.é", good + "x", f"{encode(b'[]')}.{payload}.{signature}",
    ]  # fmt: skip
    for token in wrong:
        with pytest.raises(IdTokenRefused):
            read(token)


def test_keys_on_a_curve() -> None:
    """ES256, with the two numbers of fixed length; a signature over something else does not hold."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_numbers()
    place = {"x": encode(public.x.to_bytes(32, "big")), "y": encode(public.y.to_bytes(32, "big"))}
    keys = [{"kty": "EC", "crv": "P-256", "kid": "two", **place}]
    claims = {"iss": PROVIDER.issuer, "aud": CLIENT, "exp": time.time() + 60, "nonce": "n"}
    text = f"{encode(json.dumps({'alg': 'ES256', 'kid': 'two'}).encode())}.{encode(json.dumps(claims).encode())}"
    r, s = utils.decode_dss_signature(key.sign(text.encode(), ec.ECDSA(SHA256())))
    good = f"{text}.{encode(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"
    assert read_id_token(good, keys, EXPECTED)["nonce"] == "n"
    with pytest.raises(IdTokenRefused):
        read_id_token(f"{text}.{encode(b'1' * 64)}", keys, EXPECTED)
    with pytest.raises(IdTokenRefused):
        read_id_token(good, [{**keys[0], "x": encode(b"1" * 32)}], EXPECTED)
