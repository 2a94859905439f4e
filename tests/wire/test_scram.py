"""SCRAM-SHA-256: the exchange of RFC 7677, channel binding, and everything that must fail."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from discreet.service.scram_verifiers import ScramVerifier, make_salt, make_verifier
from discreet.wire import scram
from discreet.wire.scram import ProofRefused, ScramChallenge


def prove(made: ScramChallenge, secret: str, user: str, header: bytes = b"n,,", binding: bytes = b"") -> bytes:
    """The last words of an honest client."""
    salted = hashlib.pbkdf2_hmac("sha256", secret.encode(), make_salt(user), 4096)
    key = hmac.digest(salted, b"Client Key", "sha256")
    bare = f"c={base64.b64encode(header + binding).decode()},r={made.nonce}"
    signed = b",".join([made.first_bare.encode(), made.words, bare.encode()])
    signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
    return f"{bare},p={base64.b64encode(bytes(a ^ b for a, b in zip(key, signature))).decode()}".encode()


def test_the_example_of_the_rfc() -> None:
    """RFC 7677, section 3, the password "pencil": the proof is accepted, and the server's signature is theirs."""
    salt, first = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), "n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    said = f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    verifier = ScramVerifier(hashlib.sha256(client_key).digest(), hmac.digest(salted, b"Server Key", "sha256"))
    made = ScramChallenge(said, nonce, first, b"n,,", False)
    last = f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    number, words = scram.check_proof(made, last, None, lambda: [verifier])
    assert (number, words) == (0, b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_the_right_token_among_several_is_found() -> None:
    verifiers = [make_verifier("ana", f"discreet_{n}") for n in range(3)]
    made = scram.challenge(scram.PLAIN, b"n,,n=,r=abc", "ana", None)
    number, last = scram.check_proof(made, prove(made, "discreet_2", "ana"), None, lambda: verifiers)
    assert number == 2 and last.startswith(b"v=")
    for secret, user in (("discreet_9", "ana"), ("discreet_2", "ben")):
        with pytest.raises(ProofRefused):
            scram.check_proof(made, prove(made, secret, user), None, lambda: verifiers)
    with pytest.raises(ProofRefused):
        scram.check_proof(made, prove(made, "discreet_2", "ana"), None, list)


def test_a_proof_holds_once() -> None:
    """The nonce of the server is new each time, so a proof that was overheard is worth nothing."""
    verifier = make_verifier("ana", "discreet_1")
    first, second = (scram.challenge(scram.PLAIN, b"n,,n=,r=abc", "ana", None) for _ in range(2))
    overheard = prove(first, "discreet_1", "ana")
    with pytest.raises(ProofRefused):
        scram.check_proof(second, overheard, None, lambda: [verifier])


def test_binding_to_the_certificate() -> None:
    """Somebody between client and server has another certificate, and is noticed; so is the list being cut."""
    verifier, flag = make_verifier("ana", "discreet_1"), b"p=tls-server-end-point,,"
    made = scram.challenge(scram.BOUND, flag + b"n=,r=abc", "ana", b"certificate")
    assert scram.check_proof(
        made, prove(made, "discreet_1", "ana", flag, b"certificate"), b"certificate", lambda: [verifier]
    )
    with pytest.raises(ProofRefused):
        scram.check_proof(made, prove(made, "discreet_1", "ana", flag, b"another"), b"certificate", lambda: [verifier])
    with pytest.raises(ProofRefused):
        scram.challenge(scram.PLAIN, b"y,,n=,r=abc", "ana", b"certificate")
    with pytest.raises(ProofRefused):
        scram.challenge(scram.PLAIN, flag + b"n=,r=abc", "ana", b"certificate")
    with pytest.raises(ProofRefused):
        scram.challenge(scram.BOUND, flag + b"n=,r=abc", "ana", None)


@pytest.mark.parametrize(
    "words",
    [
        b"",
        b"n,,",
        b"n,,n=",
        b"n,,n=,r=",
        b"x,,n=,r=a",
        b"n,,n=,r=a,m=x",
        b"n,,n=,r=a,r=b",
        b"\xff",
        b"n,,n=,r=" + b"a" * 999,
    ],
)
def test_first_words_that_are_none(words: bytes) -> None:
    with pytest.raises(ProofRefused):
        scram.challenge(scram.PLAIN, words, "ana", None)


@pytest.mark.parametrize("words", [b"", b"c=biws", b"c=biws,r=x,p=y", b"p=", b"\xff", b"c=,r=,p="])
def test_last_words_that_are_none(words: bytes) -> None:
    made = scram.challenge(scram.PLAIN, b"n,,n=,r=abc", "ana", None)
    with pytest.raises(ProofRefused):
        scram.check_proof(made, words, None, lambda: [make_verifier("ana", "discreet_1")])
