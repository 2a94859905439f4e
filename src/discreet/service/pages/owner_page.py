"""The page of an owner: tokens, who spent what, how the budget went down, and what waits for a look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.service.messages import ApiResponse
from discreet.service.pages.charts import draw_burndown
from discreet.service.pages.layout import make_field, make_form, make_page, make_problem, make_problem_page
from discreet.service.pages.markup import Figure, Html, element, join, make_explanation, make_table, write_figure
from discreet.service.pages.terms import PageTerm, explain
from discreet.service.pages.visits import Visit, make_page_response, read_decimal, redirect
from discreet.service.roles import Role

_HERE = "/owner"
_MOST_LINES = 50


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


def amend(visit: Visit) -> ApiResponse:
    """The terms of the changed codebook on record, and in force."""
    return _declare(visit, "datasets/{d}/amend", {"reason": visit.word("reason")})


def reload(visit: Visit) -> ApiResponse:
    """The changed codebook in force."""
    return _declare(visit, "datasets/{d}/reload", {})


def _declare(visit: Visit, path: str, body: Any, argument: str = "") -> ApiResponse:
    reply = visit.call("POST", path, body, argument=argument)
    return redirect(_HERE) if reply.is_good else _draw(visit, make_problem(reply.document), status=reply.status)


def _draw(visit: Visit, first: Html | None = None, status: int = 200) -> ApiResponse:
    tokens, spent = visit.call("GET", "datasets/{d}/tokens"), visit.call("GET", "datasets/{d}/burndown")
    checked = visit.call("GET", "datasets/{d}/checklist")
    for reply in (tokens, spent, checked):
        if not reply.is_good:
            return make_problem_page(visit, _HERE, "Owner", reply)
    body = [
        first,
        _tell_waiting(visit, checked.document["waiting"]),
        element("section", element("h2", "Budget over time"), draw_burndown(spent.document["curve"]),
                explain(PageTerm.CURVE), _list_analysts(spent.document["analysts"])),
        element("section", element("h2", "Caps"), _list_caps(checked.document)),
        element("section", element("h2", "Tokens"), _list_tokens(visit, tokens.document["tokens"]), _make_maker(visit),
                explain(PageTerm.TOKEN)),
        element("section", element("h2", "Codebook"), _list_checks(checked.document["lines"]), _make_reloader(visit)),
        element("section", element("h2", "Ledger"), _make_verifier(visit)),
        element("section", element("h2", "Refusals and sign-ins"), _list_access(visit)),
        element("section", element("h2", "Declarations"), _make_declarations(visit)),
    ]  # fmt: skip
    return make_page_response(make_page(visit, _HERE, "Owner", *body), status)


def _tell_waiting(visit: Visit, waiting: list[str]) -> Html | None:
    """What waits for a look: a question failed, and nothing is answered until the owner says that it may go on."""
    if not waiting:
        return None
    return element(
        "div",
        element("h2", "A failure waits for you"),
        element("p", f"A question failed after it was charged, so questions of {', '.join(waiting)} are refused. Look "
                "at the server's own log for the reason. If the data is as it should be, go on."),
        make_form(
            visit, "/owner/resume",
            make_field("What did you find?", "found", "It stays on record in your name.", required=True, name="reason"),
            element("p", element("button", "Go on")),
        ),
        class_="problem", role="alert",
    )  # fmt: skip


def _list_checks(lines: list[Mapping[str, Any]]) -> Html:
    """The checklist: what to look at first, and what is good folded away."""
    grades = {"✓": "good", "!": "weak", "✗": "wrong"}
    open_ = [line for line in lines if line["grade"] != "✓"]
    good = [line for line in lines if line["grade"] == "✓"]
    told = [
        element(
            "li", element("strong", line["topic"]), ": ", line["finding"], " ", element("em", line["fix"]),
            class_=grades[line["grade"]],
        )
        for line in open_
    ]  # fmt: skip
    rest = [element("li", element("strong", line["topic"]), ": ", line["finding"]) for line in good]
    return join(
        element("ul", told, class_="checks") if told else element("p", "Nothing to mend.", class_="empty"),
        element("details", element("summary", f"{len(good)} choices are good"), element("ul", rest)) if rest else None,
    )


def _list_caps(found: Mapping[str, Any]) -> Html:
    """What limits single questions, people and periods, and who may ask at all."""
    lines = [element("li", str(each)) for each in found["caps"]]
    lines += [
        element("li", f"{word} that may ask: {', '.join(found[word]) or 'none'}")
        for word in ("analysts", "projects")
        if found[word] is not None
    ]
    none = element("p", "There are none: anybody with a token may spend all that is left.", class_="empty")
    return join(element("ul", lines) if lines else none, explain(PageTerm.CAP))


def _make_verifier(visit: Visit) -> Html:
    """The check of the whole log, on the page of the auditor."""
    said = element("p", "Every charge and every answer is in a log that cannot be changed unseen.")
    check = make_form(visit, "/audit/verify", element("p", element("button", "Verify the log", class_="quiet")))
    return join(said, check, element("p", element("a", "Heads, receipts and export", href="/audit")))


def _make_reloader(visit: Visit) -> Html:
    """A changed codebook: what is public about the data at once, the terms of the budget with a reason."""
    again = make_form(
        visit, "/owner/reload", element("p", element("button", "Read the codebook again", class_="quiet"))
    )
    terms = make_form(
        visit, "/owner/amend",
        make_field("Why does the budget change?", "amend-reason", "It stays on record in your name.", required=True,
                   name="reason"),
        element("p", element("button", "Put the new terms on record")),
    )  # fmt: skip
    why = make_explanation(
        "When is that needed?", "A codebook that was edited is in force when you say so, and not before. Another "
        "budget, cap or list of names is a promise to people, so it goes on record with your name.",
    )  # fmt: skip
    return join(again, element("details", element("summary", "The budget or a cap was changed"), terms, why))


def _list_access(visit: Visit) -> Html:
    """The latest lines of the log of access."""
    lines = _read_latest(visit)
    if not lines:
        return element("p", "Nothing was refused, and nobody has signed in.", class_="empty")
    rows = [
        (str(line["time"])[:19].replace("T", " "), line["name"] or "nobody known", line["kind"], line["route"],
         line.get("code", ""))
        for line in lines
    ]  # fmt: skip
    heads = ("time (UTC)", "who", "what", "where", "why")
    return element(
        "details",
        element("summary", f"The latest {len(rows)}"),
        make_table(heads, rows, "Refusals and sign-ins", stacked=True),
    )


def _read_latest(visit: Visit) -> list[Mapping[str, Any]]:
    path = "datasets/{d}/access"
    first = visit.call("GET", path, query={"limit": "1"})
    head = first.document["head"] if first.is_good else None
    before = {"after": str(head["number"] - _MOST_LINES)} if head and head["number"] >= _MOST_LINES else {}
    found = visit.call("GET", path, query={**before, "limit": str(_MOST_LINES)})
    return list(reversed(found.document["lines"])) if found.is_good else []


def _list_analysts(analysts: list[Mapping[str, Any]]) -> Html:
    if not analysts:
        return element("p", "Nobody has asked yet.", class_="empty")
    rows = [
        (each["analyst"], write_figure(each["charges"]), Figure(f"{each['spent']:.4g}"),
         Figure("none" if each["cap"] is None else each["cap"]))
        for each in analysts
    ]  # fmt: skip
    return make_table(("who", "charges", "spent", "cap"), rows, "Who spent what")


def _list_tokens(visit: Visit, tokens: list[Mapping[str, Any]]) -> Html:
    rows = [
        (each["name"], each["role"], each["project"], each["per_query"] or "none", each["state"],
         str(each["expires"])[:10], _make_revoker(visit, each))
        for each in tokens
    ]  # fmt: skip
    heads = ("name", "role", "project", "cap for one question", "state", "until", "")
    none = element("p", "There are no tokens yet. Make one for yourself, and one for each analyst.", class_="empty")
    return make_table(heads, rows, "All tokens", stacked=True) if rows else none


def _make_revoker(visit: Visit, token: Mapping[str, Any]) -> Html | None:
    if token["state"] != "valid":
        return None
    words = f"Revoke the token {token['id']} of {token['name']}"
    return make_form(
        visit, "/owner/revoke", element("input", type="hidden", name="id", value=token["id"]),
        element("button", "Revoke", class_="quiet small", aria_label=words),
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
    """What stays on record in the owner's name."""
    box = element("input", type="checkbox", id="other_people", name="other_people", value="yes", required=True)
    anew = make_form(
        visit, "/owner/renew",
        element("p", element("label", box, " Nobody of the earlier data is in the new data.", for_="other_people")),
        make_field("Why?", "renew-reason", "It stays on record in your name.", required=True, name="reason"),
        element("p", element("button", "Start the budget anew", class_="danger")),
    )  # fmt: skip
    why = make_explanation(
        "When is that right?", "Only where the data is about other people. The same people have one budget, for ever."
    )
    return element("details", element("summary", "Start the budget anew"), why, anew)
