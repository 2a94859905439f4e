r"""Signs for terminals that do not know ours: a Windows code page or plain ASCII shows ``#`` for a bar, ``eps`` for ε.

What has no substitute is written as Python writes it (``\xfc``), so that nothing fails and nothing is lost.
"""

from __future__ import annotations

import codecs
import io
import sys

_NAME = "discreet-signs"
_SUBSTITUTES = {
    "█": "#", "▒": "=", "░": ".", "─": "-", "━": "-", "│": "|", "╸": "-", "╺": "-",
    "…": "~", "±": "+-", "✓": "v", "✗": "x", "×": "x", "·": "*", "•": "*", "–": "-", "—": "-", "−": "-",
    "≤": "<=", "≥": ">=", "→": "->", "←": "<-", "ε": "eps", "δ": "delta", "ρ": "rho", "μ": "mu", "σ": "sigma",
    "²": "^2", "√": "sqrt", "Σ": "sum", "“": '"', "”": '"', "‘": "'", "’": "'",
}  # fmt: skip  # a table of signs


def prepare_streams() -> None:
    """Let standard output and errors take every text, whatever their encoding is."""
    codecs.register_error(_NAME, _substitute)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_NAME)


def _substitute(error: UnicodeError) -> tuple[str | bytes, int]:
    """The handler of what an encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    lost = "".join(_SUBSTITUTES.get(sign) or sign.encode("ascii", "backslashreplace").decode() for sign in signs)
    return lost, error.end
