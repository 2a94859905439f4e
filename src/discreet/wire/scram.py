"""The server's side of SCRAM-SHA-256 (RFC 5802), with channel binding to the certificate where there is TLS.

A token never travels, and passwords in the clear are never asked for. Every client gets the same kind of challenge,
whether its name is known or not, and every failure has the same words.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Callable, Sequence

from discreet.entropy import SYSTEM
from discreet.late_dataclass import dataclass
from discreet.service.scram_verifiers import ITERATIONS, ScramVerifier, make_salt

PLAIN, BOUND = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"
_LONGEST_NONCE = 200


class ProofRefused(Exception):
    """The client did not show that it has a token, or did not keep to the exchange."""


@dataclass(frozen=True, slots=True)
class ScramChallenge:
    """What the server said first, and what it needs to check the proof."""

    words: bytes
    nonce: str
    first_bare: str
    header: bytes
    bound: bool


def list_mechanisms(binding: bytes | None) -> tuple[str, ...]:
    """What a client may choose from; binding to the certificate needs one."""
    return (PLAIN,) if binding is None else (BOUND, PLAIN)


def challenge(mechanism: str, words: bytes, user: str, binding: bytes | None) -> ScramChallenge:
    """The answer to the client's first words: salt, iterations, and a nonce that goes on from the client's."""
    if mechanism not in list_mechanisms(binding):
        raise ProofRefused
    text = _decode(words)
    header, rest = _split_header(text)
    flag = header.split(",")[0]
    if (mechanism == BOUND) != flag.startswith("p=") or (flag.startswith("p=") and flag != "p=tls-server-end-point"):
        raise ProofRefused
    if flag == "y" and binding is not None:  # somebody between us took the better mechanism out of the list
        raise ProofRefused
    fields = _read_fields(rest)
    own = fields.get("r", "")
    if not own or len(own) > _LONGEST_NONCE or "m" in fields:
        raise ProofRefused
    nonce = own + base64.b64encode(SYSTEM.bits(192).to_bytes(24, "big")).decode()
    salt = base64.b64encode(make_salt(user)).decode()
    said = f"r={nonce},s={salt},i={ITERATIONS}".encode()
    return ScramChallenge(said, nonce, rest, header.encode(), mechanism == BOUND)


def check_proof(
    made: ScramChallenge, words: bytes, binding: bytes | None, verifiers: Callable[[], Sequence[ScramVerifier]]
) -> tuple[int, bytes]:
    """Which of the verifiers a client has shown to have, and the server's last words."""
    text = _decode(words)
    bare, mark, proof = text.rpartition(",p=")
    fields = _read_fields(bare)
    bound = made.header + (binding or b"" if made.bound else b"")
    expected = base64.b64encode(bound).decode()
    if not mark or fields.get("r") != made.nonce or not hmac.compare_digest(fields.get("c", ""), expected):
        raise ProofRefused
    signed = b",".join([made.first_bare.encode(), made.words, bare.encode()])
    try:
        shown = base64.b64decode(proof, validate=True)
    except (binascii.Error, ValueError):
        raise ProofRefused from None
    known = verifiers()
    accepted = [number for number, verifier in enumerate(known) if verifier.accepts(shown, signed)]
    if not accepted:
        raise ProofRefused
    found = accepted[0]
    return found, b"v=" + base64.b64encode(known[found].sign(signed))


def _decode(words: bytes) -> str:
    try:
        return words.decode("ascii")
    except UnicodeDecodeError:
        raise ProofRefused from None


def _split_header(text: str) -> tuple[str, str]:
    """The header about channel binding with both of its commas, and what follows."""
    flag, _, rest = text.partition(",")
    name, mark, rest = rest.partition(",")
    if not mark or (flag not in ("n", "y") and not flag.startswith("p=")):
        raise ProofRefused
    return f"{flag},{name},", rest


def _read_fields(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for part in text.split(","):
        name, mark, value = part.partition("=")
        if not mark or len(name) != 1 or name in fields:
            raise ProofRefused
        fields[name] = value
    return fields


def hash_certificate(pem: bytes) -> bytes:
    """What a client binds to (RFC 5929, tls-server-end-point): the hash of the first certificate of a file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    found = x509.load_pem_x509_certificate(pem)
    own = found.signature_hash_algorithm
    weak = own is None or isinstance(own, hashes.MD5 | hashes.SHA1)
    return found.fingerprint(hashes.SHA256() if own is None or weak else own)
