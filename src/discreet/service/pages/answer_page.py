"""The pages of an answer, with its chart, downloads and receipt, and of all that was asked before."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from discreet.service.answer_forms import AnswerForm
from discreet.service.documents import make_not_found
from discreet.service.messages import ApiResponse
from discreet.service.pages.charts import draw_bars, find_measured, is_number
from discreet.service.pages.layout import make_cost, make_form, make_page, make_problem, make_problem_page
from discreet.service.pages.markup import Child, Figure, Html, element, join, make_explanation, make_table, write_figure
from discreet.service.pages.terms import PageTerm, explain
from discreet.service.pages.visits import PAGE_HEADERS, Visit, make_page_response, quote_part, redirect

_MOST_ROWS = 500
_MOST_CHARGES = 200
_DOWNLOADS = {
    "csv": AnswerForm.CSV, "json": AnswerForm.JSON, "arrow": AnswerForm.ARROW, "parquet": AnswerForm.PARQUET,
}  # fmt: skip


def path_of_request(key: str) -> str:
    """The address of a request."""
    return f"/requests/{quote_part(key)}"


def show_request(visit: Visit) -> ApiResponse:
    """A request of the visitor's own with its answers."""
    reply = visit.call("GET", "requests/{x}", argument=visit.argument)
    if not reply.is_good:
        return make_problem_page(visit, "/history", "Request", reply)
    found = reply.document
    match found["state"]:
        case "running" | "cancelling":
            return _respond(visit, "Question", _draw_running(visit, found), _draw_question(found))
        case "failed":
            return _respond(visit, "Question", _draw_question(found), make_problem(found["problem"]))
        case "answered":
            link = path_of_request(visit.argument) if found["charged"] else None
            answers = found["answers"]
            body = [
                draw_answer(answer, analyst=visit.caller.token.name, link=link, files=len(answers) == 1)
                for answer in answers
            ]
            return _respond(visit, "Answer", _draw_question(found), *body)
        case _:
            said = (
                "This was charged, and has no answer yet. Ask the same question again to go on without a new charge, "
                "or tell the owner."
            )
            waiting = element("p", said, class_="notice", role="status")
            return _respond(visit, "Question", waiting, _draw_question(found))


def _respond(visit: Visit, title: str, *body: Child) -> ApiResponse:
    """The page of a request, with its id below."""
    named = element("p", element("small", "Request ", element("code", visit.argument)))
    return make_page_response(make_page(visit, "/history", title, *body, named))


def _draw_question(found: Mapping[str, Any]) -> Html | None:
    """The question as it was typed, and the way to change it."""
    if not found["sql"]:
        return None
    change = element("a", "Change the question", href=f"/ask?sql={quote_part(str(found['sql']))}")
    return element("section", element("h2", "You asked"), element("pre", found["sql"]), element("p", change))


def _draw_running(visit: Visit, found: Mapping[str, Any]) -> Html:
    """How far a question is. The script follows it; without one the page loads itself anew."""
    if visit.caller.opened.book.answer_after is not None:
        return _draw_held(visit)
    ending = found["state"] == "cancelling"
    said = "It is being ended." if ending else "The data is being read. You may leave this page and come back."
    bar = element("progress", value=f"{found['progress']:.3f}", max="1", id="progress", aria_label="How far it is")
    stop = make_form(
        visit, f"/cancel/{quote_part(visit.argument)}", element("button", "End the question", class_="danger"),
    )  # fmt: skip
    why = make_explanation(
        "What happens if I end it?", "What was charged stays charged, because the data may have been read already. The "
        "same question goes on later without a new charge.",
    )  # fmt: skip
    return element(
        "section",
        element("noscript", element("meta", http_equiv="refresh", content="2")),
        element("p", said, role="status", id="progress-words"), bar, None if ending else stop, why,
        id="running", data_follow=f"/progress/{quote_part(visit.argument)}",
    )  # fmt: skip


def _draw_held(visit: Visit) -> Html:
    """A question whose answer is held to a raster: how far it is is not told, and it cannot be ended."""
    said = "The question runs. Its answer comes at a set time. You may leave this page and come back."
    why = make_explanation(
        "Why does it take so long?", "How long the work takes could tell something about the data. So the owner has "
        "set times at which answers are handed out, and a question that runs cannot be ended.",
    )  # fmt: skip
    return element(
        "section",
        element("noscript", element("meta", http_equiv="refresh", content="2")),
        element("p", said, role="status", id="progress-words"),
        element("progress", max="1", aria_label="It runs"), why,
        id="running", data_follow=f"/progress/{quote_part(visit.argument)}",
    )  # fmt: skip


def follow(visit: Visit) -> ApiResponse:
    """The progress of a request as events, for the script."""
    return visit.send("GET", "requests/{x}/events", argument=visit.argument)


def cancel(visit: Visit) -> ApiResponse:
    """End a request; one that has just ended by itself is shown as it is."""
    visit.send("POST", "requests/{x}/cancel", {}, argument=visit.argument)
    return redirect(path_of_request(visit.argument))


def download(visit: Visit) -> ApiResponse:
    """An answer as a file."""
    key, _, form = visit.argument.rpartition(".")
    if form not in _DOWNLOADS:
        raise make_not_found()
    made = visit.send("GET", "requests/{x}", argument=key, headers={"accept": str(_DOWNLOADS[form])})
    if made.status != 200:
        return make_problem_page(visit, "/history", "Request", visit.call("GET", "requests/{x}", argument=key))
    kept = "".join(sign for sign in key if sign.isascii() and (sign.isalnum() or sign in "._-"))
    file = {"Content-Disposition": f'attachment; filename="{kept}.{form}"'}
    return ApiResponse(status=200, body=made.body, media=made.media, headers={**PAGE_HEADERS, **file})


def draw_answer(document: Mapping[str, Any], *, analyst: str, link: str | None, files: bool = False) -> Html:
    """One answer; with a link it stands at its own address, and without one it follows from the record.

    An analyst who paid for it gets the way to the address that stays.
    """
    rows, receipt = document["rows"], document["receipt"]
    key = str(receipt.get("request", ""))
    paid = element("a", "To the request that paid for it.", href=path_of_request(key))
    said = "From the record: it cost nothing again. " if key else "It is about public tables alone, and costs nothing."
    again = (said, paid if key and receipt.get("analyst") == analyst else None)
    replayed = None if link else element("p", again, class_="good", role="status")
    below = link.replace("/requests/", "/downloads/") if link and files else ""
    links = [join(element("a", _name(form), href=f"{below}.{form}"), " ") for form in _DOWNLOADS] if below else []
    return element(
        "section",
        replayed,
        element("p", "Download: ", links, class_="actions") if links else None,
        [draw_bars(rows, name) for name in find_measured(rows[0])[:4]] if len(rows) > 1 else None,
        _draw_rows(rows),
        element(
            "p", "Cost: ", make_cost(str(receipt["cost"])), ". ", element("small", "Left: ", document["remaining"])
        ),
        draw_receipt(receipt),
        element("p", element("a", "Use as a table in the next question", href=_use(link))) if below and rows else None,
    )


def _name(form: str) -> str:
    return form.upper() if len(form) <= 4 else form.capitalize()


def _use(link: str | None) -> str:
    return f"/ask?use={(link or '').removeprefix('/requests/')}"


def _draw_rows(rows: Sequence[Mapping[str, Any]]) -> Html:
    if not rows:
        return element("p", "The answer has no rows.")
    cells = [[_write_cell(cell) for cell in row.values()] for row in rows[:_MOST_ROWS]]
    more = f"Rows of the answer; the first {_MOST_ROWS} of {len(rows)}" if len(rows) > _MOST_ROWS else "Rows"
    ends = any(find_measured(row) for row in rows[:1])
    return join(make_table(rows[0], cells, more), explain(PageTerm.ENDS) if ends else None)


def _write_cell(cell: Any) -> str:
    if cell is None:
        return Figure("NULL")
    return write_figure(cell) if is_number(cell) else str(cell)


def draw_receipt(receipt: Mapping[str, Any], *, unfolded: bool = False) -> Html:
    """The receipt: what can be told to others, with its place in the ledger."""
    words = ("request", "analyst", "time", "protects", "question", "level", "interval")
    lines: list[Child] = []
    for word in words:
        if receipt.get(word):
            lines += [element("dt", word), element("dd", str(receipt[word]))]
    for limit in receipt.get("limits", ()):
        lines += [element("dt", "limit"), element("dd", str(limit))]
    whole = element("details", element("summary", "The whole receipt"), element("pre", json.dumps(receipt, indent=1)))
    return element(
        "details", element("summary", "Receipt"), element("dl", lines), explain(PageTerm.RECEIPT), whole,
        class_="receipt", open=unfolded,
    )  # fmt: skip


def show_history(visit: Visit) -> ApiResponse:
    """Charges, the latest first, with a search in questions, names and ids."""
    found: list[Mapping[str, Any]] = []
    after, more = 0, True
    while more:
        reply = visit.call("GET", "datasets/{d}/history", query={"after": str(after), "limit": "1000"})
        if not reply.is_good:
            return make_problem_page(visit, "/history", "History", reply)
        found += reply.document["charges"]
        more = reply.document["more"]
        after = found[-1]["number"] if found else 0
    sought = visit.word("search").casefold()
    kept = [each for each in reversed(found) if sought in _make_searched(each)]
    shown = kept[:_MOST_CHARGES]
    search = element(
        "form", element("label", "Search", for_="search"), " ",
        element("input", type="search", id="search", name="search", value=visit.word("search")), " ",
        element("button", "Search", class_="quiet"), method="get", action="/history", role="search", class_="search",
    )  # fmt: skip
    rows = [
        (_link_receipt(visit, each), _tell_time(each), each["analyst"], _link(visit, each),
         join(element("pre", each["sql"] or each["question"]), _ask_again(visit, each)), make_cost(str(each["cost"])),
         "yes" if each["answered"] else "not yet")
        for each in shown
    ]  # fmt: skip
    caption = ("1 charge" if len(kept) == 1 else f"{len(kept)} charges") + (
        f", the latest {len(shown)}" if len(shown) < len(kept) else ""
    )
    heads = ("no.", "time (UTC)", "who", "request", "question", "cost", "answered")
    listed = make_table(heads, rows, caption, stacked=True)
    first = element("a", "Write the first question.", href="/ask") if visit.caller.token.role.may_ask else None
    empty = element("p", "Nothing was found." if found else ("Nothing was asked yet. ", first), class_="empty")
    return make_page_response(
        make_page(visit, "/history", "History", search, element("section", listed) if rows else empty)
    )


def _tell_time(charge: Mapping[str, Any]) -> Html:
    day, _, time = str(charge["time"])[:19].partition("T")
    return join(element("span", day, class_="nowrap"), " ", time)


def show_receipt(visit: Visit) -> ApiResponse:
    """The receipts of one charge, for those who look after the log: no answer is on it."""
    reply = visit.call("GET", "datasets/{d}/receipts/{x}", argument=visit.argument)
    if not reply.is_good:
        return make_problem_page(visit, "/history", "Receipt", reply)
    found = reply.document
    lines = [("asked by", found["analyst"]), ("request", found["request"]), ("time", found["time"]),
             ("question", found["question"]), ("answered", "yes" if found["answered"] else "not yet")]  # fmt: skip
    told = element("dl", [join(element("dt", word), element("dd", value)) for word, value in lines])
    none = element("p", "There is no receipt of an answer: it was no question, or it has no answer yet.")
    body = [draw_receipt(receipt, unfolded=True) for receipt in found["receipts"]] or [none]
    charge = element("section", told, element("p", "Cost: ", make_cost(str(found["cost"]))), body)
    return make_page_response(make_page(visit, "/history", f"Charge {found['number']}", charge))


def _link_receipt(visit: Visit, charge: Mapping[str, Any]) -> Html:
    """The number of a charge, as a link to its receipt for those who look after the log."""
    number = str(charge["number"])
    if not visit.caller.token.role.sees_everybody:
        return join(number)
    return element("a", number, href=f"/receipts/{number}", aria_label=f"Receipt of charge {number}")


def _ask_again(visit: Visit, charge: Mapping[str, Any]) -> Html | None:
    """The question in the form again, where its SQL is known: asked in the same way it is free."""
    if not visit.caller.token.role.may_ask or not charge["sql"]:
        return None
    return element("a", "Write it again", href=f"/ask?sql={quote_part(str(charge['sql']))}")


def _make_searched(charge: Mapping[str, Any]) -> str:
    return "\n".join(str(charge[name]) for name in ("question", "sql", "request", "analyst", "project")).casefold()


def _link(visit: Visit, charge: Mapping[str, Any]) -> Html:
    """The request, as a link where the visitor may see its answer."""
    token, key = visit.caller.token, str(charge["request"])
    short = element("code", key if len(key) <= 14 else f"{key[:13]}…", title=key)
    own = token.role.may_ask and charge["analyst"] == token.name
    return element("a", short, href=path_of_request(key)) if own else short
