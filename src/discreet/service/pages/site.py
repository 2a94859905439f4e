"""The pages as a function: a request in, a page out. Who looks is read from the cookie; a form must be of our own."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from importlib import resources
from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qsl, urlsplit

from discreet.errors import DiscreetError
from discreet.late_dataclass import dataclass
from discreet.service import problems
from discreet.service.callers import Caller
from discreet.service.data_folder import DataFolder
from discreet.service.messages import ApiRequest, ApiResponse, RefusalCode, RequestRefused, refuse_body
from discreet.service.oidc import OidcProvider
from discreet.service.pages import answer_page, ask_page, audit_page, dataset_page, guide_page, owner_page, sign_in_page
from discreet.service.pages.guide_page import GuideVisit
from discreet.service.pages.layout import make_bare_page, make_problem
from discreet.service.pages.markup import element
from discreet.service.pages.visits import Visit, make_page_response, redirect
from discreet.service.routes import SIGN_IN, Service
from discreet.service.served_dataset import ServedDataset
from discreet.service.sessions import BrowserSession, SessionStore, is_same_key

LOG = logging.getLogger("discreet.service")
_MOST_WORDS = 2000
_FORM = "application/x-www-form-urlencoded"
_MEDIA = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_STATIC = {
    name: _MEDIA[name[name.rindex(".") :]]
    for name in ("discreet.css", "colours.js", "discreet.js", "completion.js", "progress.js", "icon.svg")
}

PageHandler: TypeAlias = Callable[[Visit], ApiResponse]
# Rights are those of the API: a page shows the refusal that the API gives.
_PAGES: Mapping[tuple[str, str], PageHandler] = {
    ("GET", "dataset"): dataset_page.show_dataset,
    ("GET", "ask"): ask_page.show_ask,
    ("POST", "ask"): ask_page.ask,
    ("POST", "preview"): ask_page.preview,
    ("GET", "requests/{x}"): answer_page.show_request,
    ("GET", "downloads/{x}"): answer_page.download,
    ("GET", "progress/{x}"): answer_page.follow,
    ("POST", "cancel/{x}"): answer_page.cancel,
    ("GET", "history"): answer_page.show_history,
    ("GET", "receipts/{x}"): answer_page.show_receipt,
    ("GET", "releases/{x}"): dataset_page.download_release,
    ("GET", "owner"): owner_page.show_owner,
    ("POST", "owner/tokens"): owner_page.create_token,
    ("POST", "owner/revoke"): owner_page.revoke_token,
    ("POST", "owner/resume"): owner_page.resume,
    ("POST", "owner/renew"): owner_page.renew,
    ("POST", "owner/amend"): owner_page.amend,
    ("POST", "owner/reload"): owner_page.reload,
    ("GET", "audit"): audit_page.show_audit,
    ("POST", "audit/verify"): audit_page.verify,
    ("GET", "audit/export/{x}"): audit_page.export,
    ("GET", "audit/head"): audit_page.download_head,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The pages of a service. ``secure`` says that browsers reach it by TLS."""

    service: Service
    sessions: SessionStore
    secure: bool = False
    guide: DataFolder | None = None
    oidc: OidcProvider | None = None

    @property
    def cookie(self) -> str:
        """The name of the cookie; the prefix ties it to this host and to TLS, which plain loopback does not have."""
        return "__Host-discreet" if self.secure else "discreet"

    def answer(self, request: ApiRequest) -> ApiResponse:
        """The page of a request; every refusal is a page, too."""
        try:
            response = self._answer(request)
        except RequestRefused as refused:
            made = problems.refuse_request(refused)
            self.service.note_access(replace(made, route="pages"), None)
            response = _show_problem(made)
        except Exception as error:
            LOG.error("An error that nobody foresaw: %s", type(error).__name__)
            response = _show_problem(problems.describe_unforeseen(charged=None))
        self.service.metrics.count(response.route, response.status)
        return response

    def _answer(self, request: ApiRequest) -> ApiResponse:
        path = request.path.removeprefix("/")
        if request.method == "GET" and path.startswith("static/"):
            return _send_static(path.removeprefix("static/"))
        if request.method == "POST":
            check_origin(request)
        if (request.method, path) == ("POST", "sign-in"):
            return self._sign_in(request, self.sessions.sign_in, read_form(request).get("token", "").strip())
        if path.startswith("once/"):
            code = path.removeprefix("once/")
            if request.method == "GET":
                return replace(sign_in_page.show_link(code), route="once/{x}")
            return replace(self._sign_in(request, self.sessions.use_link, code), route="once/{x}")
        if self.oidc is not None and request.method == "GET" and path in ("oidc", "oidc/callback"):
            made = self._begin_oidc(self.oidc) if path == "oidc" else self._finish_oidc(self.oidc, request)
            return replace(made, route=made.route or path)
        return self._answer_visitor(request, path)

    def _begin_oidc(self, provider: OidcProvider) -> ApiResponse:
        """To the provider's page; a cookie of its own binds the way back to this browser."""
        try:
            address, state = provider.begin()
        except DiscreetError:
            return sign_in_page.show_sign_in(failed=True, provided=True)
        # The way back comes from another site, so this cookie is Lax; it opens nothing by itself.
        secure = "; Secure" if self.secure else ""
        cookie = f"{self.cookie}-oidc={state}; Path=/; HttpOnly; SameSite=Lax; Max-Age=600{secure}"
        return redirect(address, Set_Cookie=cookie)

    def _finish_oidc(self, provider: OidcProvider, request: ApiRequest) -> ApiResponse:
        """A new session, and a page that goes on by itself: a strict cookie is not sent on a way from another site."""
        kept = self._read_cookie(request, f"{self.cookie}-oidc")
        words = {name: request.query.get(name, "") for name in ("code", "state")}
        person = provider.finish(**words, kept=kept)
        name = None if person is None else self.sessions.sign_in_named(person)
        found = None if name is None else self.sessions.find(name)
        if name is None or found is None:
            refused = sign_in_page.show_sign_in(failed=True, provided=True)
            self.service.note_access(replace(refused, route=SIGN_IN), None)
            return refused
        made = replace(sign_in_page.show_way_on(self._write_cookie(name)), route=SIGN_IN)
        self.service.note_access(made, found[0])
        return made

    def _answer_visitor(self, request: ApiRequest, path: str) -> ApiResponse:
        if self.guide is not None and path in ("guide", "guide/save"):
            return self._guide(request, path, self.guide)
        found = self.sessions.find(self._read_cookie(request))
        if found is None:
            if request.method == "GET" and self.sessions.find_guided(self._read_cookie(request)) is not None:
                return redirect("/guide")
            if request.method == "POST":
                raise RequestRefused(RefusalCode.UNAUTHORIZED, "You are not signed in any more.", "Sign in again.")
            return (
                redirect("/sign-in") if path != "sign-in" else sign_in_page.show_sign_in(provided=self.oidc is not None)
            )
        caller, session = found
        words = read_form(request) if request.method == "POST" else dict(request.query)
        if request.method == "POST" and not is_same_key(words.get("form_key", ""), session.form_key):
            raise RequestRefused(RefusalCode.FORBIDDEN, "The form is not of this session.", "Load the page again.")
        if path in ("sign-out", "another", "turn"):
            return self._change_session(request, path, session, words)
        if request.method == "GET" and path in ("", "sign-in"):
            return redirect("/dataset")
        route, argument = find_page(request.method, path)
        visit = replace(self._make_visit(caller, session), argument=argument, words=words)
        response = _PAGES[request.method, route](visit)
        return replace(response, route=f"pages/{route}", token=caller.token.id)

    def _make_visit(self, caller: Caller, session: BrowserSession) -> Visit:
        return Visit(
            service=self.service, caller=caller, form_key=session.form_key, guided=self.guide is not None,
            others=sorted(set(session.tokens) - {session.dataset}),
        )  # fmt: skip

    def _sign_in(
        self, request: ApiRequest, enter: Callable[[str], str | None], secret: str, then: str = "/dataset"
    ) -> ApiResponse:
        """A new session under a new name. An earlier one of the same browser ends."""
        name = enter(secret)
        if name is not None and self.sessions.find_guided(name) is not None and self.sessions.find(name) is None:
            return replace(redirect("/guide", Set_Cookie=self._write_cookie(name)), route=SIGN_IN)
        found = None if name is None else self.sessions.find(name)
        if name is None or found is None:
            refused = sign_in_page.show_sign_in(failed=True, provided=self.oidc is not None)
            self.service.note_access(replace(refused, route=SIGN_IN), None)
            return refused
        self.sessions.sign_out(self._read_cookie(request))
        made = replace(redirect(then, Set_Cookie=self._write_cookie(name)), route=SIGN_IN)
        self.service.note_access(made, found[0])
        return made

    def _guide(self, request: ApiRequest, path: str, folder: DataFolder) -> ApiResponse:
        """The guide to a first codebook: for whoever has its link, and for owners."""
        session = self.sessions.find_guided(self._read_cookie(request))
        if session is None:
            return redirect("/sign-in")
        words = read_form(request) if request.method == "POST" else dict(request.query)
        if request.method == "POST" and not is_same_key(words.get("form_key", ""), session.form_key):
            raise RequestRefused(RefusalCode.FORBIDDEN, "The form is not of this session.", "Load the page again.")
        found = self.sessions.find(self._read_cookie(request))
        owner = None if found is None else self._make_visit(*found)
        visit = GuideVisit(folder=self._leave_out(folder), form_key=session.form_key, words=words, owner=owner)
        if (request.method, path) != ("POST", "guide/save"):
            return replace(guide_page.show_guide(visit), route="pages/guide")
        made = guide_page.save(visit)
        if isinstance(made, ApiResponse):
            return replace(made, route="pages/guide/save")
        return replace(self._serve_first(request, made, visit), route="pages/guide/save")

    def _leave_out(self, folder: DataFolder) -> DataFolder:
        """The folder without the files of datasets that are served."""
        books = [dataset.opened.book for dataset in self.service.datasets.values()]
        return replace(folder, taken=frozenset(source.path for book in books for source in book.sources.values()))

    def _serve_first(self, request: ApiRequest, codebook: Path, visit: GuideVisit) -> ApiResponse:
        """Serve the codebook that was made, and sign its owner in."""
        try:
            dataset = ServedDataset(codebook)
        except DiscreetError as error:
            return guide_page.show_guide(visit, error)
        if dataset.name in self.service.datasets:
            dataset.close()
            raise refuse_body("A dataset of this name is served already.", "Rename the data file, and begin anew.")
        self.service.datasets[dataset.name] = dataset
        return self._sign_in(request, self.sessions.use_link, self.sessions.make_link(dataset.name), "/owner")

    def _change_session(
        self, request: ApiRequest, path: str, session: BrowserSession, words: Mapping[str, str]
    ) -> ApiResponse:
        """Leave, open another dataset beside those that are open, or turn to one of them."""
        if request.method == "POST" and path == "sign-out":
            return self._sign_out(request)
        if request.method == "GET" and path == "another":
            return replace(sign_in_page.show_another(session.form_key), route="another")
        if request.method == "POST" and path == "another":
            enter = partial(self.sessions.sign_in, beside=session)
            made = self._sign_in(request, enter, words.get("token", "").strip())
            failed = made.status != HTTPStatus.SEE_OTHER
            return (
                replace(sign_in_page.show_another(session.form_key, failed=failed), route=SIGN_IN) if failed else made
            )
        chosen = words.get("dataset", "") if request.method == "POST" and path == "turn" else ""
        if not self.sessions.turn(self._read_cookie(request), chosen):
            raise RequestRefused(RefusalCode.NOT_FOUND, "There is no such page.", "Go back to the first page.")
        return replace(redirect("/dataset"), route="turn")

    def _sign_out(self, request: ApiRequest) -> ApiResponse:
        self.sessions.sign_out(self._read_cookie(request))
        ended = f"{self._write_cookie('')}; Max-Age=0"
        return replace(redirect("/sign-in", Set_Cookie=ended, Clear_Site_Data='"cache"'), route="sign-out")

    def _write_cookie(self, value: str) -> str:
        secure = "; Secure" if self.secure else ""
        return f"{self.cookie}={value}; Path=/; HttpOnly; SameSite=Strict{secure}"

    def _read_cookie(self, request: ApiRequest, sought: str = "") -> str:
        """The value of our cookie, or of another one of ours.

        It is "" where there is none or more than one, which a neighbour may have planted.
        """
        pairs = (part.strip().partition("=") for part in request.headers.get("cookie", "").replace(",", ";").split(";"))
        values = [value for name, _, value in pairs if name == (sought or self.cookie)]
        return values[0] if len(values) == 1 else ""


def _show_problem(made: ApiResponse) -> ApiResponse:
    """A refusal as a page, with the way back."""
    back = element("p", element("a", "To the first page", href="/"))
    return make_page_response(make_bare_page("Not possible", make_problem(json.loads(made.body)), back), made.status)


def find_page(method: str, path: str) -> tuple[str, str]:
    """The route of a path, and the argument at its end."""
    if (method, path) in _PAGES and "{" not in path:
        return path, ""
    above, _, argument = path.rpartition("/")
    route = f"{above}/{{x}}"
    if (method, route) in _PAGES and argument:
        return route, argument
    raise RequestRefused(RefusalCode.NOT_FOUND, "There is no such page.", "Go back to the first page.")


def check_origin(request: ApiRequest) -> None:
    """Refuse a form that was not sent from a page of this very host. Browsers say it; nobody else needs pages."""
    origin, host = request.headers.get("origin", ""), request.headers.get("host", "")
    near = request.headers.get("sec-fetch-site", "same-origin") == "same-origin"
    if not near or not host or urlsplit(origin).netloc != host:
        raise RequestRefused(
            RefusalCode.FORBIDDEN, "The form comes from a page of another site.", "Use the form on our own page."
        )


def read_form(request: ApiRequest) -> dict[str, str]:
    """The words of a form, each said once."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise RequestRefused(RefusalCode.UNSUPPORTED_MEDIA_TYPE, "The body is no form.", "Use the form on the page.")
    try:
        pairs = parse_qsl(
            request.body.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_WORDS, errors="strict"
        )
    except ValueError:
        raise refuse_body("The form cannot be read.", "Use the form on the page.") from None
    words = dict(pairs)
    if len(words) != len(pairs):
        raise refuse_body("The form says a word twice.", "Use the form on the page.")
    return words


def _send_static(name: str) -> ApiResponse:
    if name not in _STATIC:
        raise RequestRefused(RefusalCode.NOT_FOUND, "There is no such file.", "Load the page again.")
    body = (resources.files("discreet.service.pages") / "static" / name).read_bytes()
    return ApiResponse(status=200, body=body, media=_STATIC[name], route="static")
