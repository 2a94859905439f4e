"""The value by which a dear question is confirmed: it is told with the price, and is of use for that question alone.

An agent that has not seen the price does not know it. It does not prove that a person was asked: what an agent may
spend at all is limited by its token and the codebook.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

from discreet.entropy import SYSTEM

_SIGNS = 10


class Confirmations:
    """Makes and checks the values of one server, which holds their key."""

    def __init__(self) -> None:
        self._key = SYSTEM.bits(256).to_bytes(32, "big")

    def make(self, *asked: Any) -> str:
        """The value that confirms what is asked: who asks, the question, and its price."""
        text = json.dumps(asked, default=str, ensure_ascii=True)
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()[:_SIGNS]

    def check(self, value: str, *asked: Any) -> bool:
        """Whether a value confirms exactly that."""
        return hmac.compare_digest(value.strip().encode(), self.make(*asked).encode())
