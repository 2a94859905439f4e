"""The page on which questions are written: the preview follows the typing, and asking is one press away.

Without JavaScript the same form has a button for the preview. The price is always the curator's: the sliders only
choose a number on the curve that the preview gave.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from discreet.service.messages import ApiResponse
from discreet.service.pages.answer_page import draw_answer, path_of_request
from discreet.service.pages.dataset_page import make_gauge, tell_if_spent
from discreet.service.pages.layout import make_cost, make_field, make_form, make_page, make_problem, make_problem_page
from discreet.service.pages.markup import Child, Html, element, join, make_table
from discreet.service.pages.terms import PageTerm, explain
from discreet.service.pages.visits import ApiReply, Visit, make_page_response, read_decimal, redirect
from discreet.service.sessions import make_name

EARLIER = "earlier"
_PATIENCE = "respond-async, wait=2"
_FIRST_PERCENT = "5"
_NOTHING_YET = "Write a question. Its cost and its error appear here, before anything is spent."


def show_ask(visit: Visit) -> ApiResponse:
    """The form, empty or with the question that a link brings; who may only read is told so before writing."""
    if not visit.caller.token.role.may_ask:
        said = "Your token is for reading: it shows the budget, the history and the log. Who asks needs another one."
        notice = element("p", said, class_="notice", role="status")
        return make_page_response(make_page(visit, "/ask", "Ask", notice), 403)
    return _draw(visit, join(element("p", _NOTHING_YET)), key=_make_key())


def preview(visit: Visit) -> ApiResponse:
    """The preview alone, for the script; the whole page for a browser without one."""
    reply = _find_preview(visit)
    drawn = make_problem(reply.document) if not reply.is_good else draw_preview(reply.document)
    if visit.word("part") == "preview":
        return make_page_response(drawn)
    return _draw(visit, drawn, key=visit.word("request") or _make_key())


def ask(visit: Visit) -> ApiResponse:
    """Ask under the key of the form, so that pressing twice is charged once; then go to the address of the answer."""
    key, offer = visit.word("request"), _read_offer(visit)
    if offer is None:
        return _draw(visit, _refuse_offer(), key=key or _make_key(), status=422)
    body = {"sql": visit.words.get("sql", ""), **offer, **_find_public(visit)}
    reply = visit.call("POST", "datasets/{d}/ask", body, headers={"idempotency-key": key, "prefer": _PATIENCE})
    if reply.status == HTTPStatus.ACCEPTED:
        return redirect(path_of_request(key))
    if not reply.is_good:
        # A key whose charge stands is kept, so that trying again is not charged twice.
        same = reply.document.get("charged") is not False and reply.document.get("code") != "request-conflict"
        return _draw(visit, make_problem(reply.document), key=key if same else _make_key(), status=reply.status)
    kept = visit.call("GET", "requests/{x}", argument=key)
    if kept.is_good and kept.document["charged"]:
        return redirect(path_of_request(key))
    # An answer that follows from the record has no charge, and so no address of its own.
    drawn = draw_answer(reply.document, analyst=visit.caller.token.name, link=None)
    return make_page_response(make_page(visit, "/ask", "Answer", drawn))


def draw_preview(document: Mapping[str, Any]) -> Html:
    """Cost, error of each column, and what the limits leave out."""
    free = element(
        "p", element("strong", "Already answered: free."), " The same noise, so nothing more is told.", class_="good"
    )
    price = element("p", "It costs ", make_cost(str(document["cost"])), class_="cost")
    short = element("p", "This is more than you may spend. ", document["nearest"], class_="notice")
    rows = [
        (element("code", column["name"]), _tell_error(column), column["what"])
        for column in document["columns"]
    ]  # fmt: skip
    level = f"{float(document['level']):.4g}".removeprefix("0.")
    caption = f"Error of each value, in {level if len(level) > 1 else level + '0'} of 100 cases"
    notes: list[Child] = [element("li", document["keys"]) if document["keys"] else None]
    for name, first in (("limits", ""), ("clamped", "values beyond bounds count as the bound: "), ("chosen", "")):
        notes += [element("li", f"{first}{each}") for each in document.get(name, ())]
    notes += [element("li", f"with other noise, {each}") for each in document.get("other_noise", ())]
    return element(
        "div",
        free if document["already_answered"] else price,
        None if document["fits"] or document["already_answered"] else short,
        make_table(("column", "error", "how"), rows, caption),
        explain(PageTerm.ERROR),
        element("ul", notes),
        element("p", "The error ", document["interval"], "."),
        explain(PageTerm.NOTES),
        class_="preview", data_curve=json.dumps(document.get("curve", [])),
    )  # fmt: skip


def _tell_error(column: Mapping[str, Any]) -> str:
    """The error of a column; where it depends on the size of a group, the error at some sizes."""
    said = [] if column["error"] is None else [f"±\u00a0{column['error']:,.6g}"]
    ranks = column.get("usual_error_in_rank"), column.get("error_in_rank")
    if ranks[1] is not None:
        usual = "" if ranks[0] is None else f"usually ±\u00a0{ranks[0]:,} rows in rank, "
        said.append(f"{usual}at most ±\u00a0{ranks[1]:,}" + ("" if usual else " rows"))
    sizes = column["error_by_size"].items()
    said += [f"±\u00a0{error:,.4g} in groups of {int(size):,}" for size, error in sizes if error is not None]
    return "; ".join(said) or "not known before asking"


def _find_preview(visit: Visit) -> ApiReply:
    offer = _read_offer(visit)
    if offer is None:
        return ApiReply(status=422, document={"detail": _OFFER_RULE, "charged": False})
    body = {"sql": visit.words.get("sql", ""), **offer, **_find_public(visit), "curve": True}
    return visit.call("POST", "datasets/{d}/preview", body)


_OFFER_RULE = "Give the share of the budget as a number of per cent, such as 5 or 2.5, or a column and its error."


def _refuse_offer() -> Html:
    return make_problem({"detail": _OFFER_RULE, "charged": False})


def _read_offer(visit: Visit) -> dict[str, Any] | None:
    """What is offered: an error, where one was written, or a share."""
    wanted, column = visit.word("error"), visit.word("column")
    if wanted:
        size = read_decimal(wanted)
        return None if size is None or not column else {"error": {column: str(size)}}
    percent = read_decimal(visit.word("percent"))
    return None if percent is None else {"share": f"{percent / 100:f}"}


def _find_public(visit: Visit) -> dict[str, Any]:
    """The earlier answer that the question may use as a table."""
    return {"public": {EARLIER: visit.word("use")}} if visit.word("use") else {}


def _make_key() -> str:
    return f"page-{make_name()[:32]}"


def _draw(visit: Visit, shown: Html, *, key: str, status: int = 200) -> ApiResponse:
    budget = visit.call("GET", "datasets/{d}/budget")
    if not budget.is_good:
        return make_problem_page(visit, "/ask", "Ask", budget)
    live = element("section", element("h2", "Preview"), element("div", shown, id="preview", aria_live="polite"))
    catalog = _find_catalog(visit)
    form = make_form(
        visit, "/ask", _draw_use(visit, catalog), _draw_editor(visit), _draw_offer(visit),
        element("input", type="hidden", name="request", value=key),
        element(
            "p", element("button", "Preview", formaction="/preview", class_="quiet", id="preview-button"), " ",
            element("button", "Ask", id="ask-button"), class_="actions",
        ),
        id="ask-form", data_catalog=json.dumps(catalog),
    )  # fmt: skip
    left = element("section", element("h2", "What is left"), make_gauge(budget.document))
    listed = [element("p", element("code", name), ": ", ", ".join(columns)) for name, columns in catalog.items()]
    tables = element("details", element("summary", "Tables and columns"), listed)
    both = element("div", element("div", form, tables, class_="card"), element("div", live, left), class_="two")
    page = make_page(visit, "/ask", "Ask", tell_if_spent(budget.document), both)
    return make_page_response(page, status)


def _draw_editor(visit: Visit) -> Html:
    box = element(
        "textarea", visit.words.get("sql", ""), id="sql", name="sql", rows="8", spellcheck="false",
        autocapitalize="off", autocomplete="off", aria_describedby="sql-hint", required=True,
        placeholder="SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
    )  # fmt: skip
    behind = element("pre", "", id="marks", aria_hidden="true")
    list_ = element("ul", "", id="completions", role="listbox", aria_label="Words that fit", hidden=True)
    hint = element(
        "small", "Words are completed as you type: arrows choose, Tab takes one, Escape closes. Ctrl-Enter shows the "
        "preview.", id="sql-hint",
    )  # fmt: skip
    editor = element("div", behind, box, list_, class_="editor")
    return join(element("label", "Question in SQL", for_="sql"), editor, hint)


def _draw_use(visit: Visit, catalog: Mapping[str, Any]) -> Html | None:
    """The earlier answer that is at hand as a table."""
    if not visit.word("use"):
        return None
    there = EARLIER in catalog
    if not there:
        return element("p", "The earlier answer was not found.", class_="notice", role="status")
    columns = ", ".join(catalog[EARLIER])
    said = (element("code", EARLIER), f": {columns}. It is released, so using it costs nothing.")
    kept = element("input", type="hidden", name="use", value=visit.word("use"))
    return join(element("p", "The earlier answer is the table ", said, class_="good", role="status"), kept)


def _draw_offer(visit: Visit) -> Html:
    """What to pay: a share of the budget, or the error that is wanted; two sliders that move one another."""
    percent = visit.word("percent") or _FIRST_PERCENT
    sliders = element(
        "div",
        element("label", "Cost", for_="cost-slider"),
        element("input", type="range", id="cost-slider", min="0", max="1000", step="10"),
        element("div", element("span", "cheaper"), element("span", "dearer"), class_="ends"),
        element("label", "Error ", element("output", "", id="error-output"), for_="error-slider"),
        element("input", type="range", id="error-slider", min="0", max="1000", step="10"),
        element("div", element("span", "rougher"), element("span", "more exact"), class_="ends"),
        id="sliders", hidden=True,
    )  # fmt: skip
    return element(
        "fieldset",
        element("legend", "What to pay"),
        make_field("Per cent of the budget", "percent", inputmode="decimal", value=percent),
        sliders,
        element(
            "details",
            element("summary", "Say the error instead"),
            make_field("Column", "column", value=visit.word("column")),
            make_field("Error at most ±", "error", inputmode="decimal", value=visit.word("error")),
            open=bool(visit.word("error")),
        ),
        explain(PageTerm.PRICE),
    )


def _find_catalog(visit: Visit) -> dict[str, list[str]]:
    """The names that a question may use: columns by table, with those of the earlier answer."""
    facts = visit.call("GET", "datasets/{d}")
    tables = facts.document["tables"] if facts.is_good else []
    catalog = {table["name"]: [column["name"] for column in table["columns"]] for table in tables}
    if visit.word("use"):
        used = visit.call("GET", "requests/{x}", argument=visit.word("use"))
        answers = used.document["answers"] if used.is_good else []
        if len(answers) == 1 and answers[0]["rows"]:
            catalog[EARLIER] = list(answers[0]["rows"][0])
    return catalog
