"""The page of a dataset: what it is, who is protected, what is left, and what its tables have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.service.messages import ApiResponse
from discreet.service.pages.layout import make_page, make_problem_page
from discreet.service.pages.markup import Html, element, join, make_explanation, make_table
from discreet.service.pages.visits import Visit, make_page_response

_NEIGHBOURS = {
    "add-remove": "Answers look almost the same whether or not {who} is in the data.",
    "replace": "Answers look almost the same whatever {who} has in the data.",
}
_FIRST_KEYS = 8


def show_dataset(visit: Visit) -> ApiResponse:
    """Public facts and the budget."""
    facts, budget = visit.call("GET", "datasets/{d}"), visit.call("GET", "datasets/{d}/budget")
    for reply in (facts, budget):
        if not reply.is_good:
            return make_problem_page(visit, "/dataset", "Dataset", reply)
    tables = facts.document["tables"]
    protected = [table for table in tables if not table["public"]]
    whom = sorted({str(table["protects"]) for table in protected})
    sentence = _NEIGHBOURS.get(facts.document["neighbours"], "Answers say little about {who}.")
    body = [
        tell_if_spent(budget.document),
        element("section", element("h2", "What is left"), make_gauge(budget.document), _tell_odds(budget.document)),
        element(
            "section",
            element("h2", "Who is protected"),
            [element("p", sentence.format(who=who)) for who in whom] or element("p", "All tables are public."),
            make_explanation(
                "What does this mean?",
                "Every answer has random noise in it. The noise is large enough to hide one of them, and small enough "
                "for numbers about many. What all answers together may tell is limited by the budget.",
            ),
        ),
        element("section", element("h2", "Tables"), [_show_table(table) for table in tables]),
    ]
    return make_page_response(make_page(visit, "/dataset", visit.dataset, *body))


def make_gauge(budget: Mapping[str, Any]) -> Html:
    """What is left: a gauge, a sentence, and the parameters last."""
    left, whole = float(budget["left"]), float(budget["whole"])
    part = max(0.0, min(1.0, left / whole)) if whole > 0 else 0.0
    said = f"{int(part * 100)} % of the budget is left."
    return join(
        element("meter", said, min="0", max="1", value=f"{part:.4f}", aria_label="What is left of the budget"),
        element("p", element("strong", said), " ", element("small", budget["words"])),
    )


def tell_if_spent(budget: Mapping[str, Any]) -> Html | None:
    """The notice that nothing is left, where nothing is."""
    said = "The budget is spent. Nothing new can be asked. What was answered can be seen again, for free."
    return element("p", said, class_="notice", role="status") if float(budget["left"]) <= 0 else None


def _tell_odds(budget: Mapping[str, Any]) -> Html:
    return element("p", element("strong", "What the whole budget means: "), budget["odds"])


def _show_table(table: Mapping[str, Any]) -> Html:
    about = "Public: it is no secret." if table["public"] else f"Protects {table['protects']}."
    limits = [f"{name.replace('_', ' ')}: {value}" for name, value in table["limits"].items()]
    rows = [(element("code", column["name"]), column["type"], _tell_facts(column)) for column in table["columns"]]
    return element(
        "article",
        element("h3", element("code", table["name"])),
        element("p", about, f" Limits: {'; '.join(limits)}." if limits else None),
        make_table(("column", "type", "what everybody may know"), rows, f"Columns of {table['name']}"),
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
