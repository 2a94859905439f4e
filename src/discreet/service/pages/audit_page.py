"""The page of an auditor: verify the ledger, compare heads that were kept, export the log. No answer is on it."""

from __future__ import annotations

import json
from typing import Any

from discreet.service.messages import ApiResponse
from discreet.service.pages.layout import make_form, make_page, make_problem, make_problem_page
from discreet.service.pages.markup import Html, element, join
from discreet.service.pages.terms import PageTerm, explain
from discreet.service.pages.visits import PAGE_HEADERS, Visit, make_page_response

_HERE = "/audit"
_FORMS = {"jsonl": "every entry, one in a line", "csv": "a table", "registry": "an entry for a register"}
_ENDINGS = {"jsonl": "jsonl", "csv": "csv", "registry": "json"}


def show_audit(visit: Visit) -> ApiResponse:
    """The head, and what can be done with the log."""
    return _draw(visit, None)


def verify(visit: Visit) -> ApiResponse:
    """Check every entry, and that the log still holds the heads that were kept."""
    heads = _read_heads(visit.word("heads"))
    if heads is None:
        rule = "The heads cannot be read. Paste them as they were given out, one in a line."
        return _draw(visit, make_problem({"detail": rule, "charged": False}), status=400)
    reply = visit.call("POST", "datasets/{d}/ledger/verify", {"heads": heads})
    if not reply.is_good:
        return _draw(visit, make_problem(reply.document), status=reply.status)
    found = reply.document
    compared = f" It holds the {len(heads)} heads that were kept." if heads else ""
    said = element(
        "div",
        element("h2", "The log is whole"),
        element("p", f"{found['entries']} entries, {found['charges']} charges, {found['unanswered']} of them without "
                f"an answer, from {found['first']} to {found['last']}.{compared}"),
        class_="good", role="status",
    )  # fmt: skip
    return _draw(visit, said)


def export(visit: Visit) -> ApiResponse:
    """The log as a file."""
    path = "datasets/{d}/ledger/export/{x}"
    made = visit.send("GET", path, argument=visit.argument)
    if made.status != 200:
        return make_problem_page(visit, _HERE, "Audit", visit.call("GET", path, argument=visit.argument))
    file = {"Content-Disposition": f'attachment; filename="ledger.{_ENDINGS[visit.argument]}"'}
    return ApiResponse(status=200, body=made.body, media=made.media, headers={**PAGE_HEADERS, **file})


def download_head(visit: Visit) -> ApiResponse:
    """The head as a file of one line, to be kept elsewhere."""
    head = visit.call("GET", "datasets/{d}/ledger/head")
    if not head.is_good:
        return make_problem_page(visit, _HERE, "Audit", head)
    file = {"Content-Disposition": f'attachment; filename="head-{head.document["number"]}.json"'}
    line = json.dumps(head.document).encode() + b"\n"
    return ApiResponse(status=200, body=line, media="application/json", headers={**PAGE_HEADERS, **file})


def _read_heads(text: str) -> list[Any] | None:
    """Heads one in a line, as JSON; None where one cannot be read."""
    try:
        found = [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        return None
    return found if all(isinstance(each, dict) for each in found) else None


def _draw(visit: Visit, first: Html | None, status: int = 200) -> ApiResponse:
    head = visit.call("GET", "datasets/{d}/ledger/head")
    if not head.is_good:
        return make_problem_page(visit, _HERE, "Audit", head)
    kept = element("textarea", "", id="heads", name="heads", rows="3", spellcheck="false")
    check = make_form(
        visit, "/audit/verify",
        element("label", "Heads that were kept, one in a line (may be left empty)", for_="heads"), kept,
        element("p", element("button", "Verify the log")),
    )  # fmt: skip
    files = [
        element("li", element("a", form, href=f"/audit/export/{form}"), f": {words}") for form, words in _FORMS.items()
    ]
    number, hashed = head.document["number"], head.document["hash"]
    said = f"The log has {number + 1} entries. Keep its head elsewhere, and compare it later."
    short = element("p", f"Entry {number}, hash ", element("code", f"{hashed[:16]}…"))
    save = element("p", element("a", "Download the head", href="/audit/head"))
    whole = element(
        "details", element("summary", "The whole line"), element("pre", json.dumps(head.document), class_="secret")
    )
    receipts = ("What was asked, by whom and at what cost is in the ", element("a", "history", href="/history"),
                "; the number of a charge leads to its receipt.")  # fmt: skip
    return make_page_response(
        make_page(
            visit, _HERE, "Audit",
            first,
            element("section", element("h2", "Verify"), check),
            element("section", element("h2", "Head"), element("p", said), short, save, explain(PageTerm.HEAD), whole),
            element("section", element("h2", "Receipts"), element("p", receipts)),
            element("section", element("h2", "Export"), join(element("p", "No answer is in any of them."),
                    element("ul", files))),
        ),
        status,
    )  # fmt: skip
