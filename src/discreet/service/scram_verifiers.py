"""What is kept of a token so that a client can prove by SCRAM-SHA-256 (RFC 5802, RFC 7677) that it has it.

The file keeps StoredKey and ServerKey. Neither opens anything: a proof needs ClientKey, whose hash StoredKey is. A
token is 256 random bits, so neither salt nor iterations have to keep anybody from guessing it. The salt therefore
follows from the name alone: all tokens of a name have the same one, and a name that nobody has looks like any other.
"""

from __future__ import annotations

import hashlib
import hmac

from discreet.late_dataclass import dataclass

ITERATIONS = 4096  # the least that RFC 7677 allows
_SALT = b"discreet token of "


@dataclass(frozen=True, slots=True)
class ScramVerifier:
    """StoredKey and ServerKey of one token."""

    stored_key: bytes
    server_key: bytes

    def accepts(self, proof: bytes, signed: bytes) -> bool:
        """Whether a proof of a client shows that it has the token, for the messages that were exchanged."""
        signature = hmac.digest(self.stored_key, signed, "sha256")
        if len(proof) != len(signature):
            return False
        client_key = bytes(a ^ b for a, b in zip(proof, signature))
        return hmac.compare_digest(hashlib.sha256(client_key).digest(), self.stored_key)

    def sign(self, signed: bytes) -> bytes:
        """What shows the client that the server knows the token's verifier."""
        return hmac.digest(self.server_key, signed, "sha256")


def make_salt(name: str) -> bytes:
    """The salt of everybody who is called so, whether there is somebody or not.

    >>> len(make_salt("ana")), make_salt("ana") == make_salt("ben")
    (16, False)
    """
    return hashlib.sha256(_SALT + name.encode("utf-8", "surrogateescape")).digest()[:16]


def make_verifier(name: str, secret: str) -> ScramVerifier:
    """The verifier of a token, in the name of its bearer."""
    salted = hashlib.pbkdf2_hmac("sha256", secret.encode(), make_salt(name), ITERATIONS)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    return ScramVerifier(hashlib.sha256(client_key).digest(), hmac.digest(salted, b"Server Key", "sha256"))
