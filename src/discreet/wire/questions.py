"""Questions of one session: handed to the curator in the name of its token, with the limits of the service.

There is no privacy logic here. The token is looked up before each statement, so that a revocation holds from the next
one on; the cap of the token, its project and its role are those of the service.
"""

from __future__ import annotations

import hashlib
import logging
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from discreet.errors import DiscreetError, DrawLost, EngineFailure
from discreet.frontends.google import privacy_clause
from discreet.service import problems
from discreet.service.callers import Caller, make_caller
from discreet.service.messages import ApiResponse, RequestRefused
from discreet.service.running_requests import QuestionCancelled, RunningRequest
from discreet.wire import refusals
from discreet.wire.backend_messages import WireNotice
from discreet.wire.refusals import WireRefused

if TYPE_CHECKING:
    from discreet.answer import Answer
    from discreet.preview import Preview
    from discreet.service.routes import Service
    from discreet.service.served_dataset import ServedDataset
    from discreet.service.tokens import Token

T = TypeVar("T")
LOG = logging.getLogger("discreet.service")
ROUTE = "postgres"
_GOOD = 200
_NUMBERED = re.compile(r"\$([0-9]{1,4})")


class QuestionEnded(Exception):
    """A question that gave no answer: what the client is told."""

    def __init__(self, notice: WireNotice) -> None:
        self.notice = notice
        super().__init__(notice.message)


class QuestionDoor:
    """Asks the curator in the name of one token."""

    def __init__(self, service: Service, dataset: ServedDataset, token: Token) -> None:
        self._service, self._dataset, self.token = service, dataset, token
        self._running: RunningRequest | None = None

    def cancel(self) -> None:
        """End the question that runs, if there is one."""
        running = self._running
        if running is not None:
            running.cancel()

    def check_token(self) -> None:
        """Refuse a session whose token was revoked or has ended."""
        if self._dataset.tokens.find_id(self.token.id) is None:
            rule = "The token of this session is no longer valid."
            raise WireRefused(refusals.INVALID_AUTHORIZATION, rule, "Ask the owner for another one.", fatal=True)

    def preview(
        self, text: str, offset: int, offer: Mapping[str, Any], parameters: Mapping[str, Any] | None
    ) -> Preview:
        """What a question would cost, and its columns; free. Without a stated cost, what shares would buy."""
        words = self._find_words(text, offer, parameters)

        def look(caller: Caller) -> Preview:
            return caller.curator.preview(**words, **caller.names)

        with self._hold() as caller:
            return self._run(caller, text, offset, "", lambda: look(caller))

    def preview_curve(self, text: str, offset: int, parameters: Mapping[str, Any] | None) -> Preview:
        """What shares of the budget would buy, for a question that states no cost."""
        words = self._find_words(text, {}, parameters)
        with self._hold() as caller:
            free = self._run(caller, text, offset, "", lambda: _is_free(caller, words))
            return self._run(
                caller, text, offset, "", lambda: caller.curator.preview(**words, curve=not free, **caller.names)
            )

    def ask(self, text: str, offset: int, offer: Mapping[str, Any], parameters: Mapping[str, Any] | None) -> Answer:
        """The answer to a question. It is charged under an id of its own; what is on record is given again, free."""
        words = self._find_words(text, offer, parameters)
        key = f"postgres-{uuid.uuid4().hex}"
        with self._hold() as caller:
            hashed = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
            running, _ = self._dataset.running.begin(self.token.name, key, hashed)
            self._running = running
            response = problems.describe_unforeseen(charged=None)
            try:
                answer: Answer = self._run(
                    caller, text, offset, key,
                    lambda: caller.curator.ask(**words, **caller.names, request=key, watch=running.watch),
                )  # fmt: skip
                response = ApiResponse(status=_GOOD, body=b"{}", route=ROUTE)
                return answer
            finally:
                self._running = None
                self._dataset.running.end(self.token.name, key, response, keep=False)

    def check_role(self) -> None:
        """Refuse those who may not ask."""
        if not self.token.role.may_ask:
            raise WireRefused(
                refusals.NOT_ALLOWED, "The role of this token may not ask.", "Ask the owner for another token."
            )

    @contextmanager
    def _hold(self) -> Iterator[Caller]:
        """A place of the token, and the codebook in force, for one question."""
        self.check_role()
        try:
            with self._service.limits.enter(self.token.id), self._dataset.hold() as opened:
                yield replace(make_caller(self.token, self._dataset), opened=opened)
        except RequestRefused as refused:
            self.note(replace(problems.refuse_request(refused), route=ROUTE))
            raise QuestionEnded(refusals.describe_request_refusal(refused)) from None

    def _run(self, caller: Caller, text: str, offset: int, key: str, work: Callable[[], T]) -> T:
        """What the curator gives; every error becomes a message, and a line in the log of access."""
        try:
            made = work()
        except DiscreetError as error:
            charged = isinstance(error, EngineFailure | DrawLost) or _find_charged(caller, key)
            self.note(replace(problems.describe_error(error, charged=charged), route=ROUTE))
            raise QuestionEnded(refusals.describe_error(error, text, offset, charged=charged)) from None
        except QuestionCancelled:
            charged = _find_charged(caller, key)
            self.note(replace(problems.describe_cancelled(charged=charged), route=ROUTE))
            raise QuestionEnded(refusals.describe_cancelled(charged=charged)) from None
        if key:
            self.note(ApiResponse(status=_GOOD, body=b"", route=ROUTE))
        return made

    def note(self, response: ApiResponse) -> None:
        """Count a response, and put refusals into the log of access."""
        LOG.info("%s - %s %d", self.token.id, response.route, response.status)
        self._service.metrics.count(response.route, response.status)
        self._service.note_access(response, make_caller(self.token, self._dataset))

    def _find_words(self, text: str, offer: Mapping[str, Any], parameters: Mapping[str, Any] | None) -> dict[str, Any]:
        """The call of the curator. What the GoogleSQL clause states takes the place of what the session states."""
        if not privacy_clause.mentions_clause(text):
            return {"question": text, "parameters": parameters or None, **offer}
        asked = _NUMBERED.sub(r"@\1", text)  # as that form writes parameters; every place stays where it is
        level = {name: value for name, value in offer.items() if name == "level"}
        try:
            stated = privacy_clause.parse(asked, parameters or None).options
        except DiscreetError:
            stated = {}  # the curator says what is wrong with it
        own = any("epsilon" in options for options in stated.values())
        return {"question": asked, "parameters": parameters or None, **(level if own else offer)}


def _is_free(caller: Caller, words: Mapping[str, Any]) -> bool:
    return caller.curator.is_free(words["question"], None, words["parameters"])


def _find_charged(caller: Caller, key: str) -> bool | None:
    """Whether a charge of this question is on record."""
    if not key:
        return False
    try:
        return caller.opened.curator.ledger.find_request(caller.token.name, key) is not None
    except DiscreetError:
        return None
