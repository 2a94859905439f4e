"""The page of an owner: tokens, who spent what, how the budget went down, and what waits for a look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.service.messages import ApiResponse
from discreet.service.pages.charts import draw_burndown
from discreet.service.pages.layout import make_field, make_form, make_page, make_problem, make_problem_page
from discreet.service.pages.markup import Html, element, join, make_explanation, make_table
from discreet.service.pages.visits import Visit, make_page_response, read_decimal, redirect
from discreet.service.roles import Role

_HERE = "/owner"


def show_owner(visit: Visit) -> ApiResponse:
    """Everything that an owner looks after."""
    return _draw(visit)


def create_token(visit: Visit) -> ApiResponse:
    """A new token, whose secret is on this page and on no other."""
    days = visit.word("days")
    body: dict[str, Any] = {"name": visit.word("name"), "role": visit.word("role")}
    body |= {"days": int(days) if days.isascii() and days.isdecimal() and len(days) < 6 else days} if days else {}
    for name in ("project", "per_query"):
        text = visit.word(name)
        number = read_decimal(text) if name == "per_query" else None
        body |= {name: str(number) if number is not None else text} if text else {}
    reply = visit.call("POST", "datasets/{d}/tokens", body)
    if not reply.is_good:
        return _draw(visit, make_problem(reply.document), status=reply.status)
    made = reply.document
    shown = element(
        "div",
        element("h2", f"The token of {made['name']}"),
        element("p", "Copy it now. It is shown this once and kept nowhere."),
        element("pre", made["secret"], class_="secret"),
        class_="notice", role="status",
    )  # fmt: skip
    return _draw(visit, shown)


def revoke_token(visit: Visit) -> ApiResponse:
    """The token opens nothing from the next request on."""
    return _declare(visit, "datasets/{d}/tokens/{x}/revoke", {}, visit.word("id"))


def resume(visit: Visit) -> ApiResponse:
    """Go on after a failure that was looked at."""
    return _declare(visit, "datasets/{d}/resume", {"reason": visit.word("reason")})


def renew(visit: Visit) -> ApiResponse:
    """The budget anew, for other people."""
    body = {"reason": visit.word("reason"), "other_people": visit.word("other_people") == "yes"}
    return _declare(visit, "datasets/{d}/renew", body)


def _declare(visit: Visit, path: str, body: Any, argument: str = "") -> ApiResponse:
    reply = visit.call("POST", path, body, argument=argument)
    return redirect(_HERE) if reply.is_good else _draw(visit, make_problem(reply.document), status=reply.status)


def _draw(visit: Visit, first: Html | None = None, status: int = 200) -> ApiResponse:
    tokens, spent = visit.call("GET", "datasets/{d}/tokens"), visit.call("GET", "datasets/{d}/burndown")
    for reply in (tokens, spent):
        if not reply.is_good:
            return make_problem_page(visit, _HERE, "Owner", reply)
    body = [
        first,
        element("section", element("h2", "Budget over time"), draw_burndown(spent.document["curve"]),
                _list_analysts(spent.document["analysts"])),
        element("section", element("h2", "Tokens"), _list_tokens(visit, tokens.document["tokens"]), _make_maker(visit)),
        element("section", element("h2", "Declarations"), _make_declarations(visit)),
    ]  # fmt: skip
    return make_page_response(make_page(visit, _HERE, "Owner", *body), status)


def _list_analysts(analysts: list[Mapping[str, Any]]) -> Html:
    if not analysts:
        return element("p", "Nobody has asked yet.", class_="empty")
    rows = [
        (each["analyst"], each["charges"], f"{each['spent']:.4g}", "none" if each["cap"] is None else each["cap"])
        for each in analysts
    ]
    return make_table(("who", "charges", "spent", "cap"), rows, "Who spent what")


def _list_tokens(visit: Visit, tokens: list[Mapping[str, Any]]) -> Html:
    rows = [
        (each["name"], each["role"], each["project"], each["per_query"] or "none", each["state"],
         str(each["expires"])[:10], _make_revoker(visit, each))
        for each in tokens
    ]  # fmt: skip
    heads = ("name", "role", "project", "cap for one question", "state", "until", "")
    return make_table(heads, rows, "All tokens")


def _make_revoker(visit: Visit, token: Mapping[str, Any]) -> Html | None:
    if token["state"] != "valid":
        return None
    words = f"Revoke the token {token['id']} of {token['name']}"
    return make_form(
        visit, "/owner/revoke", element("input", type="hidden", name="id", value=token["id"]),
        element("button", "Revoke", class_="quiet", aria_label=words),
    )  # fmt: skip


def _make_maker(visit: Visit) -> Html:
    options = [element("option", str(role), value=str(role), selected=role is Role.ANALYST) for role in Role]
    choice = element("select", options, id="role", name="role")
    capped = "In the budget's own terms. May be left empty."
    form = make_form(
        visit, "/owner/tokens",
        make_field("Name", "name", "In whose name questions are asked.", required=True, maxlength="100"),
        element("p", element("label", "Role", for_="role"), choice, class_="field"),
        make_field("Project", "project", "May be left empty."),
        make_field("Cap for one question", "per_query", capped, inputmode="decimal"),
        make_field("Days until it ends", "days", inputmode="numeric", value="90"),
        element("p", element("button", "Make a token")),
    )  # fmt: skip
    return element("details", element("summary", "A new token"), form)


def _make_declarations(visit: Visit) -> Html:
    """What stays on record in the owner's name; both ask for the reason."""
    go_on = make_form(
        visit, "/owner/resume",
        element("p", "After a question that failed, the dataset may wait until you have looked at it."),
        make_field("Reason", "reason", "It stays on record in your name.", required=True),
        element("p", element("button", "Go on")),
    )  # fmt: skip
    box = element("input", type="checkbox", id="other_people", name="other_people", value="yes", required=True)
    anew = make_form(
        visit, "/owner/renew",
        element("p", element("label", box, " Nobody of the earlier data is in the new data.", for_="other_people")),
        element("p", element("label", "Reason ", element("input", name="reason", required=True))),
        element("p", element("button", "Start the budget anew", class_="danger")),
    )  # fmt: skip
    why = make_explanation(
        "When is that right?", "Only where the data is about other people. The same people have one budget, for ever."
    )
    return join(
        element("details", element("summary", "Go on after a failure"), go_on),
        element("details", element("summary", "Start the budget anew"), why, anew),
    )
