"""The frame of every page: its head, the way to the other pages, and how refusals look."""

from __future__ import annotations

from typing import Any

from discreet.service.messages import ApiResponse
from discreet.service.pages.markup import Child, Html, element, join
from discreet.service.pages.visits import Visit, make_page_response
from discreet.service.roles import Role

_SCRIPTS = ("colours", "discreet", "completion", "progress")
_LINKS = (
    ("/dataset", "Dataset", frozenset(Role)),
    ("/ask", "Ask", frozenset({Role.OWNER, Role.ANALYST})),
    ("/history", "History", frozenset(Role)),
    ("/owner", "Owner", frozenset({Role.OWNER})),
    ("/audit", "Audit", frozenset({Role.OWNER, Role.AUDITOR})),
)
GUIDE = "/guide"
_CHARGES = {
    True: "A charge for it is on record and stands.",
    False: "Nothing was charged.",
    None: "Whether it was charged cannot be read now: the ledger does not answer.",
}
# Where the words for programs would not help people.
_HEADS = {
    "cancelled": "The question was ended",
    "engine-failure": "The question failed",
    "draw-lost": "The answer is lost",
    "not-found": "There is nothing here",
    "too-many-requests": "Too many at once",
    "internal": "Something went wrong",
}
_OTHER_WORDS = {
    "cancelled": "Ask the same question at the same cost, and it goes on without a new charge.",
    "not-found": "It belongs to somebody else, or it was never there.",
}


def make_bare_page(title: str, *body: Child, header: Child = None, class_: str | None = None) -> Html:
    """A page without a visitor."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{title} · discreet"),
        element("link", rel="icon", href="/static/icon.svg", type="image/svg+xml"),
        element("link", rel="stylesheet", href="/static/discreet.css"),
        [element("script", src=f"/static/{name}.js", defer=True) for name in _SCRIPTS],
    )
    main = element("main", element("h1", title), *body, id="main", tabindex="-1", class_=class_)
    skip = element("a", "To the content", href="#main", class_="skip")
    return element("html", head, element("body", skip, header, main), lang="en")


def make_page(visit: Visit, here: str, title: str, *body: Child) -> Html:
    """A page of somebody who is signed in."""
    token = visit.caller.token
    links = [
        element("a", words, href=path, aria_current="page" if path == here else None)
        for path, words, roles in _LINKS
        if token.role in roles
    ]
    if visit.guided and token.role is Role.OWNER:
        links.append(element("a", "Guide", href=GUIDE, aria_current="page" if here == GUIDE else None))
    leave = make_form(visit, "/sign-out", element("button", "Sign out", class_="quiet"))
    who = element("span", f"{token.name} ({token.role})", class_="who")
    header = element(
        "header", _draw_brand(visit), element("nav", links, aria_label="Pages"), element("div", who, leave, class_="me")
    )
    return make_bare_page(title, *body, header=header)


def _draw_brand(visit: Visit) -> Html:
    """The name of the dataset; where there are several, the way to the others."""
    name = element("strong", visit.dataset, class_="brand")
    if len(visit.service.datasets) < 2:
        return name
    turns = [
        make_form(visit, "/turn", element("button", other, name="dataset", value=other, class_="quiet"))
        for other in visit.others
    ]
    more = element("p", element("a", "Another dataset, with its token", href="/another"))
    menu = element("div", turns, more, class_="menu")
    return element(
        "details", element("summary", name, element("span", "change", class_="who")), menu, class_="datasets"
    )


def make_form(visit: Visit, action: str, *children: Child, **attributes: str) -> Html:
    """A form that is sent by POST, with the key of the session in it."""
    key = element("input", type="hidden", name="form_key", value=visit.form_key)
    return element("form", key, *children, method="post", action=action, **attributes)


def make_field(words: str, name: str, hint: str = "", /, **attributes: str | bool | None) -> Html:
    """A field of a form with its words, and a hint that screen readers tell, too."""
    told = f"{name}-hint" if hint else None
    box = element("input", id=name, aria_describedby=told, **{"type": "text", "name": name, **attributes})
    return element(
        "p", element("label", words, for_=name), box, element("small", hint, id=told) if hint else None, class_="field"
    )


def make_problem(document: Any) -> Html:
    """A refusal for people: what happened, where, what to do, and whether it was charged."""
    code, detail = str(document.get("code", "")), str(document.get("detail", ""))
    detail = _OTHER_WORDS.get(code, detail)
    place = document.get("place") or {}
    lines = [element("p", line) for line in find_sentences(detail, place.get("excerpt", ""))]
    excerpt = element("pre", place["excerpt"], tabindex="0") if place.get("excerpt") else None
    charged = document.get("charged")
    told = code in _OTHER_WORDS or ("Nothing was charged" in detail and charged is False)
    said = None if told and not charged else element("p", _CHARGES[charged])
    head = element("h2", _HEADS.get(code, "This cannot be done"))
    return element(
        "div", head, lines, excerpt, said, class_="problem", role="alert",
        data_line=place.get("line"), data_column=place.get("column"),
    )  # fmt: skip


def find_sentences(detail: str, excerpt: str) -> list[str]:
    """The sentences of a message without the excerpt, which is shown apart."""
    rest = detail.replace(excerpt, "\n") if excerpt else detail
    return [line.strip() for line in rest.splitlines() if line.strip()]


def make_problem_page(visit: Visit, here: str, title: str, reply: Any) -> ApiResponse:
    """A page that shows a refusal alone."""
    return make_page_response(make_page(visit, here, title, make_problem(reply.document)), reply.status)


def make_cost(words: str) -> Html:
    """A cost with its words first, and the parameters behind them in small print."""
    plain, _, greek = words.partition(" (")
    small = element("small", f"({greek}") if greek else None
    return join(element("strong", plain), " ", small)
