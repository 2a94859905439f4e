"""The floors of the house: who may import whom. The test reads this table, and so does docs/architecture.md.

python -m tests.house.floors      writes the table of docs/architecture.md anew
"""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"
BEGIN, END = "<!-- floors -->\n", "<!-- /floors -->\n"

# A module imports only from floors below its own. Rooms on one floor do not know each other.
FLOORS: list[dict[str, str]] = [
    {
        "errors": "every error, and who has to act on it",
        "late_dataclass": "dataclasses that are cheap to import",
        "uninterrupted": "work that no interrupt cuts in two",
        "answer_times": "when a request may learn something",
        "row_formats": "rows and documents as bytes",
        "html_tables": "tables and facts as HTML",
    },
    {"exact": "rationals, logarithms of rationals, directed rounding, certified intervals, fixed point"},
    {
        "parameters": "what a caller typed, read exactly",
        "call_forms": "calls that do not fit, and the call to write",
        "odds": "what a loss means for a person",
    },
    {
        "privacy": "units, neighbours, losses, budgets",
        "entropy": "the only source of randomness",
        "divergence": "how far apart two laws are",
        "pictures": "two laws, the loss and the best attack, as text and figures",
        "lectures": "the pages of the lectures",
    },
    {"samplers": "exact draws", "plan": "questions as immutable values, and the table of statistics"},
    {"accounting": "what events cost together", "bounding": "how far one unit can move an answer"},
    {"mechanisms": "randomised answers that know their loss"},
    {
        "frontends": "words to plans",
        "engines": "exact integers from private rows",
        "ledger": "the durable record of charges and answers",
        "codebook": "the declaration of a dataset",
        "local": "privacy before the data leaves the person",
    },
    {
        "offer": "what an analyst would pay",
        "charged_draw": "one charge, one draw, whatever is drawn",
        "release": "what is drawn, and the one function that draws",
    },
    {
        "sized_error": "errors that depend on the size of a group",
        "released_columns": "keys and aggregates as columns, from noisy numbers",
        "stated_offer": "what is said of a price beside a question",
    },
    {
        "error_targets": "the errors that an analyst wants",
        "noise_intervals": "intervals of the noise in released numbers",
        "answer_rows": "the table of an answer, by columns",
    },
    {
        "error_curve": "error against cost",
        "price": "which mechanism at which scale",
        "finish": "from noisy numbers to the table of an answer",
        "explanation": "why a plan is private, in words",
        "draw_record": "what was drawn, on record",
    },
    {
        "batch_price": "several questions under one price",
        "preview": "cost and error before anything is spent",
        "gaussian_price": "what an offer buys in Gaussian noise",
        "recorded_release": "what follows from earlier draws, for nothing",
    },
    {
        "quote": "questions with their price and identity",
        "picture": "answers as text and HTML",
    },
    {
        "plot": "answers as matplotlib charts",
        "computation_preview": "what the questions of a computation cost",
        "remaining_budget": "what is left, and what it would buy",
    },
    {"answer": "what is handed out"},
    {
        "public_tables": "rows that an analyst brings",
        "post_processing": "computations over released answers",
        "bound_search": "bounds and limits that are bought",
        "series": "counts period after period, under one charge",
        "answer_record": "answers and receipts, made and given again",
    },
    {
        "statement_reader": "what a caller asks, read as questions and computations",
        "declared_table": "tables as analysts see them",
        "charged_answers": "what a charge buys",
    },
    {"quote_desk": "prices, previews and explanations"},
    {"curator": "the line from a question to an answer", "bounds": "a deprecated name of bound_search"},
    {
        "demo": "fictional data",
        "parameter_guide": "what a privacy parameter means",
        "opening": "a curator from a codebook or from frames",
        "magic": "questions in a cell of a notebook",
        "remote": "a curator on a server",
    },
    {
        "publish": "releases that are paid for once: tables, synthetic rows",
        "dbapi": "databases by the standard of Python, and SQLAlchemy",
        "agents": "questions of agents, within what they may spend",
    },
    {
        "audit": "does it hold?",
        "attacks": "what goes wrong without it",
        "service": "who asks, and how answers and refusals look on the wire",
    },
    {"wire": "the protocol of PostgreSQL: the same service, for every tool that speaks it"},
    {"cli": "the command line"},
]


def make_table() -> str:
    """The table of floors, from the top of the house to its ground."""
    lines = ["| floor | room | what it knows |", "|---|---|---|"]
    for number, rooms in reversed(list(enumerate(FLOORS))):
        lines += [f"| {number} | `{room}` | {words} |" for room, words in rooms.items()]
    return "\n".join(lines) + "\n"


def write_table(page: str) -> str:
    """A page with the table in its place."""
    head, _, rest = page.partition(BEGIN)
    return head + BEGIN + make_table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(write_table(PAGE.read_text()))
