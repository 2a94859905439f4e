"""The page of a dataset: what it is, who is protected, what is left, and what its tables have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from discreet.service.messages import ApiResponse
from discreet.service.pages.layout import make_page, make_problem_page
from discreet.service.pages.markup import Figure, Html, element, join, make_table, write_figure
from discreet.service.pages.terms import PageTerm, explain
from discreet.service.pages.visits import PAGE_HEADERS, Visit, make_page_response

_NEIGHBOURS = {
    "add-remove": "Answers look almost the same whether or not {who} is in the data.",
    "replace": "Answers look almost the same whatever {who} has in the data.",
}
_FIRST_KEYS = 8


def show_dataset(visit: Visit) -> ApiResponse:
    """Public facts and the budget."""
    facts, budget = visit.call("GET", "datasets/{d}"), visit.call("GET", "datasets/{d}/budget")
    releases = visit.call("GET", "datasets/{d}/releases")
    for reply in (facts, budget, releases):
        if not reply.is_good:
            return make_problem_page(visit, "/dataset", "Dataset", reply)
    tables = facts.document["tables"]
    protected = [table for table in tables if not table["public"]]
    whom = sorted({str(table["protects"]) for table in protected})
    sentence = _NEIGHBOURS.get(facts.document["neighbours"], "Answers say little about {who}.")
    about = facts.document["description"]
    body = [
        element("p", about, class_="about") if about else None,
        tell_if_spent(budget.document),
        element(
            "section", element("h2", "What is left"), make_gauge(budget.document), _tell_odds(budget.document),
            explain(PageTerm.BUDGET), explain(PageTerm.ODDS),
        ),
        element(
            "section",
            element("h2", "Who is protected"),
            [element("p", sentence.format(who=who)) for who in whom] or element("p", "All tables are public."),
            explain(PageTerm.PROTECTED),
        ),
        _list_releases(releases.document["releases"]),
        element("section", element("h2", "Tables"), [_show_table(table) for table in tables]),
    ]  # fmt: skip
    return make_page_response(make_page(visit, "/dataset", visit.dataset, *body))


def make_gauge(budget: Mapping[str, Any]) -> Html:
    """What is left: a gauge, a sentence, and the parameters last."""
    part = max(0.0, min(1.0, float(budget["share"])))
    said = "Less than 1 % of the budget is left." if 0 < part < 0.01 else f"{int(part * 100)} % of the budget is left."
    return join(
        element("meter", said, min="0", max="1", value=f"{part:.4f}", aria_label="What is left of the budget"),
        element("p", element("strong", said), " ", element("small", budget["words"])),
        explain(PageTerm.LEFT),
    )


def tell_if_spent(budget: Mapping[str, Any]) -> Html | None:
    """The notice that nothing is left, or almost nothing."""
    left, again = float(budget["share"]), "What was answered can be seen again, for free."
    if left > 0.01:
        return None
    spent = "The budget is spent. Nothing new can be asked."
    almost = "The budget is almost spent. Answers to new questions would be very rough, or are refused."
    return element("p", f"{spent if left <= 0 else almost} {again}", class_="notice", role="status")


def _tell_odds(budget: Mapping[str, Any]) -> Html:
    return element("p", element("strong", "What the whole budget means: "), budget["odds"])


def download_release(visit: Visit) -> ApiResponse:
    """A release as one file."""
    path = "datasets/{d}/releases/{x}"
    made = visit.send("GET", path, argument=visit.argument)
    if made.status != HTTPStatus.OK:
        return make_problem_page(visit, "/dataset", "Release", visit.call("GET", path, argument=visit.argument))
    return replace(made, headers={**PAGE_HEADERS, **made.headers})


def _list_releases(releases: Sequence[Mapping[str, Any]]) -> Html:
    """What was published, to be downloaded."""
    rows = [
        (element("strong", each["name"]), ", ".join(each["columns"]), write_figure(each["tables"]),
         write_figure(each["synthetic_rows"]) if each["synthetic_rows"] else Figure("none"),
         element("a", "Download", href=f"/releases/{each['number']}", aria_label=f"Download {each['name']}"))
        for each in releases
    ]  # fmt: skip
    heads = ("name", "columns", "tables", "made-up rows", "")
    listed = make_table(heads, rows, "Paid for once, free for everybody who has a token")
    return element(
        "section", element("h2", "Releases to download"),
        listed if rows else element("p", "Nothing was published of this dataset yet.", class_="empty"),
        explain(PageTerm.RELEASE),
    )  # fmt: skip


_LIMITS = {
    "max_rows": "At most {} rows of one of them count in full.",
    "max_groups": "Rows of one of them count in at most {} groups.",
    "max_rows_per_group": "At most {} of its rows count in each group.",
}


def _tell_limit(name: str, value: int) -> str:
    """A limit as a sentence; one row is no rows.

    >>> _tell_limit("max_rows", 1)
    'At most 1 row of one of them counts in full.'
    """
    said = _LIMITS[name].format(value)
    return (
        said if value != 1 else said.replace("rows", "row", 1).replace("count", "counts", 1).replace("groups", "group")
    )


def _show_table(table: Mapping[str, Any]) -> Html:
    about = "Public: it is no secret." if table["public"] else f"Protects {table['protects']}."
    limits = [_tell_limit(name, value) for name, value in table["limits"].items() if name in _LIMITS]
    rows = [(element("code", column["name"]), column["type"], _tell_facts(column)) for column in table["columns"]]
    return element(
        "article",
        element("h3", element("code", table["name"])),
        element("p", " ".join([about, *limits])),
        make_table(("column", "type", "what everybody may know"), rows, f"Columns of {table['name']}", stacked=True),
    )


def _tell_facts(column: Mapping[str, Any]) -> Html:
    """The public facts of a column in words."""
    said: list[str] = []
    if "low" in column and "high" in column:
        said.append(f"from {column['low']} to {column['high']}")
    if column.get("unique"):
        said.append("no value twice")
    if column.get("nullable"):
        said.append("may be missing")
    keys = column.get("keys") or []
    if not keys:
        return join("; ".join(said))
    first = ", ".join("NULL" if key is None else str(key) for key in keys[:_FIRST_KEYS])
    if len(keys) <= _FIRST_KEYS:
        return join("; ".join([*said, f"values: {first}"]))
    rest = ", ".join("NULL" if key is None else str(key) for key in keys[:1000])
    folded = element("details", element("summary", f"{len(keys)} values: {first}, …"), element("p", rest))
    return join("; ".join(said), folded)
