"""A small OpenID provider of the tests' own, on loopback. It signs whoever is named in."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

CLIENT, SECRET = "curator", "only for the provider"  # of a test


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Provider:
    """Keys, codes that were given out, and what its tokens say beyond the usual."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(65537, 2048)
        self.issuer = ""
        self.codes: dict[str, dict[str, str]] = {}
        self.claims: dict[str, Any] = {"email": "ana@example.org", "email_verified": True}

    @property
    def keys(self) -> list[dict[str, str]]:
        """The public keys, as a provider lists them."""
        public = self.key.public_key().public_numbers()
        numbers = {name: encode(value.to_bytes(256, "big").lstrip(b"\0")) for name, value in vars_of(public).items()}
        return [{"kty": "RSA", "kid": "one", "use": "sig", **numbers}]

    def visit(self, address: str) -> dict[str, str]:
        """What a person's browser brings back from the provider's page."""
        words = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert words["response_type"] == "code" and words["code_challenge_method"] == "S256"
        code = f"code-{len(self.codes)}"
        self.codes[code] = words
        return {"code": code, "state": words["state"]}

    def redeem(self, words: dict[str, str]) -> dict[str, str] | None:
        """A code for a token, once, for the client that has the secret and the verifier."""
        asked = self.codes.pop(words.get("code", ""), None)
        if asked is None or words.get("client_secret") != SECRET:
            return None
        challenge = encode(hashlib.sha256(words.get("code_verifier", "").encode()).digest())
        return {"id_token": self.sign(nonce=asked["nonce"])} if challenge == asked["code_challenge"] else None

    def sign(self, algorithm: str = "RS256", key: Any = None, **claims: Any) -> str:
        """A token with the usual claims and others."""
        usual = {"iss": self.issuer, "aud": CLIENT, "sub": "1", "exp": time.time() + 60, **self.claims}
        head = encode(json.dumps({"alg": algorithm, "kid": "one"}).encode())
        text = f"{head}.{encode(json.dumps({**usual, **claims}).encode())}"
        signature = (key or self.key).sign(text.encode(), padding.PKCS1v15(), SHA256())
        return f"{text}.{encode(signature)}"


def vars_of(public: rsa.RSAPublicNumbers) -> dict[str, int]:
    return {"e": public.e, "n": public.n}


@contextmanager
def run_provider() -> Iterator[Provider]:
    """A provider that listens."""
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = {f"{name}_endpoint": f"{provider.issuer}/{name}" for name in ("authorization", "token")}
            pages = {
                "/.well-known/openid-configuration": {
                    "issuer": provider.issuer,
                    "jwks_uri": f"{provider.issuer}/keys",
                    **known,
                },
                "/keys": {"keys": provider.keys},
            }
            self._send(pages.get(self.path))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._send(provider.redeem({name: values[0] for name, values in parse_qs(body).items()}))

        def _send(self, document: Any) -> None:
            body = json.dumps(document).encode()
            self.send_response(200 if document is not None else 400)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider.issuer = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
