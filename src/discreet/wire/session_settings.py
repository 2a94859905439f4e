"""Settings of a session: what questions may cost (``discreet.*``), and those that clients of PostgreSQL set and show.

The cost is stated in one form at a time: SET discreet.rho takes the place of discreet.epsilon. The project comes from
the token, so that no session spends in the name of another one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from discreet.wire.refusals import INVALID_VALUE, NOT_ALLOWED, UNDEFINED_OBJECT, WireRefused

PREFIX = "discreet."
COSTS = ("epsilon", "rho", "share", "error")
WORDS = (*COSTS, "delta", "level", "group_size", "project")
SERVER_VERSION = "15.0"
_LONGEST, _MOST = 1000, 100
_RATIO = re.compile(r"[0-9]{1,50}/[0-9]{1,50}")
_OPTION = re.compile(r"(?:-c\s*|--)([A-Za-z_][\w.]*)=((?:\\.|[^\s\\])*)\s*")
_NAME = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)*")

# What clients are told at the beginning, and whenever it changes.
REPORTED = (
    "application_name", "client_encoding", "DateStyle", "default_transaction_read_only", "in_hot_standby",
    "integer_datetimes", "IntervalStyle", "is_superuser", "server_encoding", "server_version", "session_authorization",
    "standard_conforming_strings", "TimeZone",
)  # fmt: skip
_FIXED = {
    "default_transaction_read_only": "on",
    "in_hot_standby": "off",
    "integer_datetimes": "on",
    "is_superuser": "off",
    "lc_collate": "C",
    "lc_ctype": "C",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "block_size": "8192",
    "server_encoding": "UTF8",
    "server_version": SERVER_VERSION,
    "server_version_num": "150000",
    "transaction_isolation": "serializable",
    "transaction_read_only": "on",
    "wal_level": "replica",
}
_DEFAULTS = {
    "application_name": "",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "DateStyle": "ISO, MDY",
    "default_transaction_isolation": "serializable",
    "extra_float_digits": "1",
    "IntervalStyle": "postgres",
    "lc_messages": "C",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "search_path": '"$user", public',
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "TimeZone": "UTC",
}
# What a value means here cannot be changed, so that no client reads a result in another form than it is written in.
_ONLY = {
    "client_encoding": ("utf8", "utf-8", "unicode", "'utf-8'"),
    "standard_conforming_strings": ("on", "true", "1", "yes"),
}


class SessionSettings:
    """The settings of one session."""

    def __init__(self, user: str, project: str, defaults: Mapping[str, str]) -> None:
        self._project = project
        self._start = {**_DEFAULTS, **_FIXED, "session_authorization": user, f"{PREFIX}project": project, **defaults}
        self._values = dict(self._start)
        self._local: dict[str, str] = {}

    def show(self, name: str) -> str:
        """The value of a setting; empty where discreet.* is not set."""
        known = self._find(name)
        if known in self._values:
            return self._values[known]
        if known.removeprefix(PREFIX) in WORDS:
            return ""
        raise WireRefused(UNDEFINED_OBJECT, f'unrecognized configuration parameter "{known[:100]}".')

    def set(self, name: str, value: str, *, local: bool = False) -> dict[str, str]:
        """Change a setting, ``local`` until the transaction ends. Those of the result have to be told to the client."""
        known = self._find(name)
        if local and not self._local:
            self._local = self.save()
        if known.startswith(PREFIX):
            self._set_own(known.removeprefix(PREFIX), value)
            return {}
        if known in _FIXED or len(value) > _LONGEST or not _NAME.fullmatch(known.lower()):
            raise WireRefused(INVALID_VALUE, f'The setting "{known[:100]}" cannot be changed here.')
        if known in _ONLY and value.strip().lower() not in _ONLY[known]:
            raise WireRefused(INVALID_VALUE, f'"{known}" is always {_DEFAULTS[known]} here.')
        if known not in self._values and len(self._values) > _MOST:
            raise WireRefused(INVALID_VALUE, "There are too many settings.")
        if known not in _ONLY:
            self._values[known] = _keep_iso(value) if known == "DateStyle" else value
        return {known: self._values[known]} if known in REPORTED else {}

    def reset(self, name: str) -> dict[str, str]:
        """Give a setting, or ``all``, the value that it had when the session began."""
        if name.lower() == "all":
            self._values = dict(self._start)
            return self.tell()
        known = self._find(name)
        word = known.removeprefix(PREFIX)
        touched = [f"{PREFIX}{each}" for each in COSTS] if known.startswith(PREFIX) and word in COSTS else [known]
        for each in touched:
            self._values.pop(each, None)
            if each in self._start:
                self._values[each] = self._start[each]
        return {known: self._values[known]} if known in REPORTED and known in self._values else {}

    def save(self) -> dict[str, str]:
        """All values, to go back to."""
        return dict(self._values)

    def restore(self, saved: Mapping[str, str]) -> dict[str, str]:
        """Go back to what was saved: a transaction is rolled back, and what it set with it."""
        self._values, self._local = dict(saved), {}
        return self.tell()

    def end_local(self) -> dict[str, str]:
        """The transaction has ended, and with it what was set for it alone."""
        return self.restore(self._local) if self._local else {}

    def keep_as_start(self) -> None:
        """What was set until now is what RESET goes back to: the options of the connection string."""
        self._start = dict(self._values)

    def tell(self) -> dict[str, str]:
        """The settings that clients are told."""
        return {name: self._values[name] for name in REPORTED}

    def list_all(self) -> dict[str, str]:
        """Every setting, for SHOW ALL and pg_settings."""
        own = {f"{PREFIX}{word}": "" for word in WORDS}
        return dict(sorted({**own, **self._values}.items()))

    @property
    def shows_notices(self) -> bool:
        """Whether the client wants to hear what things cost."""
        return self._values["client_min_messages"].lower() not in ("warning", "error", "fatal", "panic")

    def make_offer(self) -> dict[str, Any]:
        """What questions may cost, as words for the curator."""
        found: dict[str, Any] = {}
        for word in WORDS:
            value = self._values.get(f"{PREFIX}{word}", "")
            if value and word != "project":
                found[word] = read_word(word, value)
        return found

    def _find(self, name: str) -> str:
        """A setting as it is written here, whatever the case of its letters."""
        small = name.lower()
        aliases = {"timezone": "TimeZone", "time zone": "TimeZone", "datestyle": "DateStyle"}
        known = {each.lower(): each for each in self._start}
        return aliases.get(small) or known.get(small, small)

    def _set_own(self, word: str, value: str) -> None:
        if word not in WORDS:
            known = ", ".join(PREFIX + each for each in WORDS)
            raise WireRefused(UNDEFINED_OBJECT, f'There is no setting "{PREFIX}{word[:100]}".', f"Known are {known}.")
        if word == "project":
            if value != self._project:
                hint = "Ask the owner for a token of that project: discreet token create CODEBOOK --project NAME."
                raise WireRefused(NOT_ALLOWED, "The project comes from the token.", hint)
            return
        if value:
            read_word(word, value)
        for other in COSTS if word in COSTS else ():
            self._values.pop(f"{PREFIX}{other}", None)
        self._values[f"{PREFIX}{word}"] = value


def _keep_iso(value: str) -> str:
    """Dates are always written in the ISO form; the order of day and month in what is read changes nothing here."""
    orders = [part.strip().upper() for part in value.split(",") if part.strip().upper() in ("MDY", "DMY", "YMD")]
    return f"ISO, {orders[0] if orders else 'MDY'}"


def read_word(word: str, value: str) -> Any:
    """A word of an offer as it was typed: a number, or for ``error`` numbers by column.

    >>> read_word("epsilon", "1/10"), read_word("error", "n=12, cost=500")
    (Fraction(1, 10), {'n': Decimal('12'), 'cost': Decimal('500')})
    """
    if word == "error":
        pairs = [part.partition("=") for part in value.split(",")]
        return {name.strip(): _read_number(word, size) for name, _, size in pairs}
    return _read_number(word, value)


def _read_number(word: str, value: str) -> Decimal | Fraction:
    text = value.strip()
    try:
        read = Fraction(text) if _RATIO.fullmatch(text) else Decimal(text) if len(text) <= 100 else None
    except (InvalidOperation, ZeroDivisionError):
        read = None
    if read is None or (isinstance(read, Decimal) and not read.is_finite()):
        hint = f"Write for example SET {PREFIX}{word} = {'n=12' if word == 'error' else '0.1'}."
        raise WireRefused(INVALID_VALUE, f"{PREFIX}{word} must be a number.", hint)
    return read


def read_options(text: str) -> dict[str, str]:
    """The settings of the ``options`` of a connection string: ``-c name=value``, and ``--name=value``.

    >>> read_options("-c discreet.epsilon=0.1 --client_min_messages=warning")
    {'discreet.epsilon': '0.1', 'client_min_messages': 'warning'}
    """
    found: dict[str, str] = {}
    at = len(text) - len(text.lstrip())
    while at < len(text):
        part = _OPTION.match(text, at)
        if part is None:
            hint = "Write options=-c discreet.epsilon=0.1; a space inside of a value is written \\ (backslash, space)."
            raise WireRefused(INVALID_VALUE, "The options of the connection string cannot be read.", hint)
        found[part[1].replace("-", "_")] = re.sub(r"\\(.)", r"\1", part[2])
        at = part.end()
    return found


def read_token_offer(text: str) -> dict[str, str]:
    """What a token says about cost (``epsilon=0.1``), as settings."""
    word, _, value = text.partition("=")
    return {f"{PREFIX}{word}": value} if text else {}
