"""A dataset as it is served: the curator of its codebook, its tokens, its log of access, and what runs now.

A codebook that was changed is read again on its owner's word only. Requests that run then finish with the curator with
which they began, and the last of them closes it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.codebook import Codebook
from discreet.codebook.checklist import find_worst_odds
from discreet.errors import LedgerError, UsageError
from discreet.late_dataclass import dataclass
from discreet.ledger.base_ledger import BaseLedger
from discreet.ledger.memory import MemoryLedger
from discreet.opening import open_codebook, terms_of
from discreet.service.access_log import AccessLog, access_path_of
from discreet.service.releases import releases_path_of
from discreet.service.request_bodies import RequestBodies, bodies_path_of
from discreet.service.running_requests import RunningRequests
from discreet.service.tokens import TokenStore, tokens_path_of

if TYPE_CHECKING:
    from discreet.curator import Curator
    from discreet.ledger.chain import Head


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedCodebook:
    """A codebook as it was read, with its curator, and the odds of its budget in words."""

    book: Codebook
    curator: Curator
    odds: str

    @property
    def shared(self) -> bool:
        """Whether the owner lets analysts see the questions of each other."""
        return self.book.shared_answers


class ServedDataset:
    """One dataset of the service."""

    def __init__(self, codebook: str | Path) -> None:
        self._codebook = Path(codebook)
        self.tokens = TokenStore(tokens_path_of(codebook))
        self.access = AccessLog(access_path_of(codebook))
        self.bodies = RequestBodies(bodies_path_of(codebook))
        self.releases = releases_path_of(codebook)
        self.running = RunningRequests()
        self._lock, self._changing = threading.Lock(), threading.Lock()
        self._uses: Counter[int] = Counter()
        self._opened = _open(self._codebook)

    @property
    def opened(self) -> OpenedCodebook:
        """The codebook in force, and its curator."""
        return self._opened

    @property
    def name(self) -> str:
        """The name of the dataset."""
        return self._opened.curator.name

    @property
    def curator(self) -> Curator:
        """The curator in force."""
        return self._opened.curator

    @contextmanager
    def hold(self) -> Iterator[OpenedCodebook]:
        """Keep the codebook in force open, for one request."""
        with self._lock:
            held = self._opened
            self._uses[id(held)] += 1
        try:
            yield held
        finally:
            with self._lock:
                self._uses[id(held)] -= 1
                last = not self._uses[id(held)]
                if last:
                    del self._uses[id(held)]
                unused = last and held is not self._opened
            if unused:
                held.curator.close()

    def reload(self) -> OpenedCodebook:
        """Read the codebook again. One that cannot be opened changes nothing."""
        with self._changing:
            made = _open(self._codebook)
            if made.curator.name != self.name:
                made.curator.close()
                raise UsageError(
                    "The codebook now describes a dataset of another name. Serve it on its own. Nothing was changed."
                )
            with self._lock:
                before, self._opened = self._opened, made
                unused = not self._uses[id(before)]
            if unused:
                before.curator.close()
            return made

    def amend(self, *, by: str, reason: str) -> Head:
        """Put the budget, caps and names of the changed codebook on record, and go on under them."""
        book = Codebook.load(self._codebook)
        if book.name != self.name:
            raise UsageError("The codebook now describes a dataset of another name. Nothing was changed.")
        terms, ledger = terms_of(book), self.curator.ledger
        if not isinstance(ledger, BaseLedger):
            raise LedgerError("This ledger keeps no record that could be amended. Nothing was changed.")
        terms.check_people(ledger.state)
        made = ledger.amend(budget=terms.budget, policy=terms.policy, by=by, reason=reason)
        self.reload()
        return made

    def close(self) -> None:
        """Close the curator. Nobody asks any more."""
        self._opened.curator.close()
        self.bodies.close()


def _open(path: Path) -> OpenedCodebook:
    book = Codebook.load(path)
    curator = open_codebook(path)
    if isinstance(curator.ledger, MemoryLedger):
        curator.close()
        raise UsageError(f"The ledger of {book.name!r} is in memory and would forget its charges. Keep it in a file.")
    return OpenedCodebook(book=book, curator=curator, odds=find_worst_odds(book).sentence())
