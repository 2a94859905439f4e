"""Routes as values: a method and a path, who may use it, what its body says, and the function that answers.

The table of all routes is read by the service, which finds the route of a request, and by ``openapi``, which describes
it. So the description cannot say anything else than what is served.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from discreet.late_dataclass import dataclass
from discreet.service.answer_forms import AnswerForm
from discreet.service.bodies import BodyWords
from discreet.service.callers import Caller
from discreet.service.messages import ApiRequest, ApiResponse
from discreet.service.roles import Role

ROOT = "/api/v1/"
EVERYBODY = frozenset(Role)
ASKING = frozenset({Role.OWNER, Role.ANALYST})
OWNING = frozenset({Role.OWNER})
AUDITING = frozenset({Role.OWNER, Role.AUDITOR})

Handler: TypeAlias = Callable[[Caller, ApiRequest, str], ApiResponse]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRoute:
    """One route. In its path ``{dataset}`` is the name of a dataset; another part in braces is the argument."""

    method: str
    path: str
    about: str
    handler: Handler
    roles: frozenset[Role] = EVERYBODY
    body: BodyWords | None = None
    query: Mapping[str, int] = field(default_factory=dict)
    """Numbers that the query may have, with the largest."""
    forms: Sequence[AnswerForm] = (AnswerForm.JSON,)
    media: Sequence[str] = ()
    """Media types that are no form of an answer."""
    spends: bool = False
    """It asks under an Idempotency-Key, and may be sent with ``Prefer: respond-async``."""

    def match(self, path: str, dataset: str) -> str | None:
        """The argument in a path below the root, if it is this route's; "" where the route has none."""
        argument, ours, theirs = "", self.path.split("/"), path.split("/")
        if len(ours) != len(theirs):
            return None
        for own, their in zip(ours, theirs):
            if own == "{dataset}":
                if their != dataset:
                    return None
            elif own.startswith("{"):
                argument = their
            elif own != their:
                return None
        return argument


def find_routes(table: Iterable[ApiRoute], path: str, dataset: str) -> dict[str, tuple[ApiRoute, str]]:
    """The routes of a path by method, each with the argument in the path."""
    if not path.startswith(ROOT):
        return {}
    found = ((route, route.match(path.removeprefix(ROOT), dataset)) for route in table)
    return {route.method: (route, argument) for route, argument in found if argument is not None}
