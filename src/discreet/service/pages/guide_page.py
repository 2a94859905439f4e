"""The guide to a first codebook: a file, plain questions, what the answers mean on fictional rows, and the text.

The steward never begins with a blank file. Of the data the names and types of columns are read, and values only with
leave. Nothing here spends: there is no ledger yet.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from discreet.codebook.data_files import DataFiles
from discreet.codebook.entries import ROW
from discreet.entropy import SYSTEM
from discreet.errors import DiscreetError
from discreet.late_dataclass import dataclass
from discreet.odds import posterior
from discreet.plan.types import Type
from discreet.service.data_folder import DataFolder
from discreet.service.first_codebook import (
    SHARES,
    ColumnAnswer,
    ExampleError,
    FirstAnswers,
    find_errors,
    write_codebook,
)
from discreet.service.messages import ApiResponse
from discreet.service.pages.layout import GUIDE, make_bare_page, make_field, make_page, make_problem
from discreet.service.pages.markup import Child, Html, element, join, make_explanation, make_table
from discreet.service.pages.visits import Visit, make_page_response

_BUDGETS = {"0.5": "strict", "1": "usual", "3": "wide", "8": "weak"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GuideVisit:
    """Somebody in the guide, with the words of the form."""

    folder: DataFolder
    form_key: str
    words: Mapping[str, str] = field(default_factory=dict)
    owner: Visit | None = None
    """Who is signed in to a dataset already; None with the guide's own link."""

    def word(self, name: str) -> str:
        """A word of the form, without spaces at its ends."""
        return self.words.get(name, "").strip()


def show_guide(visit: GuideVisit, problem: DiscreetError | None = None) -> ApiResponse:
    """The list of files; with a file, the questions; with answers, what they mean."""
    if not visit.word("file"):
        return _make_response(visit, _list_files(visit), problem)
    try:
        found = visit.folder.inspect(visit.word("file"), values=visit.word("values") == "yes")
    except DiscreetError as error:
        return _make_response(visit, _list_files(visit), error)
    shown: Child = None
    if visit.word("unit") and problem is None:
        try:
            answers = read_answers(visit, found)
            shown = join(_draw_errors(find_errors(found, answers)), _draw_text(visit, found, answers))
        except DiscreetError as error:
            problem = error
    return _make_response(visit, join(_draw_questions(visit, found), shown), problem)


def save(visit: GuideVisit) -> Path | ApiResponse:
    """The codebook beside its data, or the guide with the reason why not."""
    try:
        found = visit.folder.inspect(visit.word("file"), values=visit.word("values") == "yes")
        text = write_codebook(found, read_answers(visit, found), visit.folder.path, _make_ledger_id())
        return visit.folder.save(next(iter(found.tables)), text)
    except DiscreetError as error:
        return show_guide(visit, error)


def read_answers(visit: GuideVisit, found: DataFiles) -> FirstAnswers:
    """The answers of the form."""
    ((_, schema),) = found.tables.items()
    columns = {
        name: ColumnAnswer(
            low=visit.word(f"low-{place}"),
            high=visit.word(f"high-{place}"),
            keys=tuple(key.strip() for key in visit.word(f"keys-{place}").split(",") if key.strip()),
        )
        for place, name in enumerate(schema)
    }
    numbers = {name: visit.word(name).replace(",", "").replace(" ", "") for name in ("max_rows", "rows", "units")}
    epsilon = visit.word("epsilon") or "1"
    return FirstAnswers(unit=visit.word("unit"), epsilon=epsilon, columns=columns, **numbers)


def _make_ledger_id() -> str:
    return str(uuid.UUID(int=SYSTEM.bits(128), version=4))


def _make_response(visit: GuideVisit, body: Html, problem: DiscreetError | None) -> ApiResponse:
    told = None if problem is None else make_problem({"detail": str(problem), "charged": False})
    first = element(
        "p", "Five questions about your data, in plain words. You see what each answer means before anything is kept, "
        "and you get a codebook: the file that says who is protected, what is public, and what may be spent.",
    )  # fmt: skip
    if visit.owner is None:
        page = make_bare_page("A first codebook", first, told, body)
    else:
        page = make_page(visit.owner, GUIDE, "Another codebook", first, told, body)
    return make_page_response(page, 200 if problem is None else 422)


def _list_files(visit: GuideVisit) -> Html:
    files = visit.folder.list_files()
    if not files:
        return element(
            "p", "There is no data file here yet. Put a .csv or .parquet file into ",
            element("code", str(visit.folder.path)), " and load this page again.", class_="empty",
        )  # fmt: skip
    options = [
        element(
            "label", element("input", type="radio", name="file", value=name, required=True), " ",
            element("code", name), " ", element("small", _tell_size(size)), class_="choice",
        )
        for name, size in files
    ]  # fmt: skip
    leave = element(
        "label", element("input", type="checkbox", name="values", value="yes"),
        " The values of a CSV file may be read to propose types. They stay on this server.", class_="choice",
    )  # fmt: skip
    return element(
        "form", element("fieldset", element("legend", "1. Which file is the data?"), options), leave,
        element("p", element("button", "Go on")), method="get", action="/guide",
    )  # fmt: skip


def _tell_size(size: int) -> str:
    amount, unit = float(size), "bytes"
    for larger in ("KB", "MB", "GB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.3g} {unit}"


def _draw_questions(visit: GuideVisit, found: DataFiles) -> Html:
    ((_, schema),) = found.tables.items()
    keep = [
        element("input", type="hidden", name=name, value=visit.word(name))
        for name in ("file", "values") if visit.word(name)
    ]  # fmt: skip
    key = element("input", type="hidden", name="form_key", value=visit.form_key)
    look = element("button", "See what it means", formaction="/guide", id="guide-look")
    return element(
        "form", key, keep, _tell_file(visit, schema), _ask_who(visit, found), _ask_rows(visit),
        _ask_columns(visit, schema), _ask_budget(visit),
        element("p", look, class_="actions"), method="post", action="/guide", id="guide-form",
    )  # fmt: skip


def _tell_file(visit: GuideVisit, schema: Mapping[str, Type | None]) -> Html:
    """The first answer, and the way back to it."""
    known = f"{len(schema)} columns" if len(schema) != 1 else "1 column"
    return element(
        "fieldset",
        element("legend", "1. Which file is the data?"),
        element(
            "p", element("code", visit.word("file")), f", {known}. ", element("a", "Choose another", href="/guide")
        ),
    )


def _ask_who(visit: GuideVisit, found: DataFiles) -> Html:
    likely = [name for name in found.likely if name in found.units]
    rest = [name for name in found.units if name not in likely]
    chosen = visit.word("unit") or (likely[0] if likely else ROW)
    options = [
        element("option", f"one {name}: everything in its rows", value=name, selected=name == chosen)
        for name in (*likely, *rest)
    ]  # fmt: skip
    options.append(element("option", "one row: nobody has two", value=ROW, selected=chosen == ROW))
    return element(
        "fieldset",
        element("legend", "2. Who is protected?"),
        element("p", element("label", "The column that says whose row it is", for_="unit"),
                element("select", options, id="unit", name="unit"), class_="field"),
        make_explanation(
            "What does this mean?", "Answers look almost the same whether or not one of these is in the data. If a "
            "person can have several rows, choose the column that names the person; choosing one row would then "
            "protect each row, and not the person.",
        ),
    )  # fmt: skip


def _ask_rows(visit: GuideVisit) -> Html:
    return element(
        "fieldset",
        element("legend", "3. How much is there?"),
        make_field("How many rows of one of them may count?", "max_rows",
                   "More rows than that count less. Leave it empty where nobody has two.", inputmode="numeric",
                   value=visit.word("max_rows") or "10"),
        make_field("How many rows are there, roughly?", "rows", "Only if everybody may know it. It judges errors.",
                   inputmode="numeric", value=visit.word("rows")),
        make_field("And how many of those who are protected?", "units", "Only if everybody may know it.",
                   inputmode="numeric", value=visit.word("units")),
    )  # fmt: skip


def _ask_columns(visit: GuideVisit, schema: Mapping[str, Type | None]) -> Html:
    rows = [
        (element("code", name), str(kind), _ask_column(visit, place, name, kind))
        for place, (name, kind) in enumerate(schema.items()) if kind is not None and kind is not Type.BOOLEAN
    ]  # fmt: skip
    return element(
        "fieldset",
        element("legend", "4. What may everybody know about the columns?"),
        element("p", "Only what you know without looking into the data: ages lie within 0 and 110, wards have a list."),
        make_table(("column", "type", "known to everybody"), rows, "Columns of the file", stacked=True),
        make_explanation(
            "Why not read it from the data?", "The largest value of a column belongs to somebody. What is written here "
            "is public, so it must come from elsewhere; bounds can also be bought later with a little of the budget.",
        ),
    )  # fmt: skip


def _ask_column(visit: GuideVisit, place: int, name: str, kind: Type) -> Html:
    if kind is Type.TEXT:
        return _make_box(f"keys-{place}", f"All values of {name}, with commas between", visit, "north, south, east")
    low = _make_box(f"low-{place}", f"Smallest value of {name}", visit, "smallest")
    return join(low, " to ", _make_box(f"high-{place}", f"Largest value of {name}", visit, "largest"))


def _make_box(name: str, words: str, visit: GuideVisit, example: str) -> Html:
    return element("input", type="text", name=name, aria_label=words, value=visit.word(name), placeholder=example)


def _ask_budget(visit: GuideVisit) -> Html:
    chosen = visit.word("epsilon") or "1"
    choices = [
        element(
            "label", element("input", type="radio", name="epsilon", value=epsilon, checked=epsilon == chosen), " ",
            element("strong", word), f": {_tell_odds(epsilon)} ", element("small", f"(ε {epsilon})"), class_="choice",
        )
        for epsilon, word in _BUDGETS.items()
    ]  # fmt: skip
    return element(
        "fieldset",
        element("legend", "5. What may all answers together tell about one of them?"),
        choices,
        make_explanation(
            "What does this mean?", "Somebody guesses something about one person, with even odds. After all answers "
            "that this dataset will ever give, the odds of being right are at most these. It is for ever, and for "
            "everybody who asks.",
        ),
    )  # fmt: skip


def _tell_odds(epsilon: str) -> str:
    """The odds of a guess, rounded up. The little that δ adds is in the codebook's own checklist.

    >>> _tell_odds("1"), _tell_odds("8")
    ('a guess with even odds is right in at most 74 of 100 cases', 'a guess with even odds is right almost always')
    """
    odds = math.ceil(100 * posterior(0.5, float(epsilon)))
    return "a guess with even odds is right " + (f"in at most {odds} of 100 cases" if odds < 100 else "almost always")


def _draw_errors(errors: list[ExampleError]) -> Html:
    """What the answers mean, in numbers."""
    heads = ("question", *(f"± at {share} of the budget" for share in SHARES), "on fictional rows")
    rows = [
        (each.words, *(_tell_number(error) for error in each.errors), _tell_example(each))
        for each in errors
    ]  # fmt: skip
    return element(
        "section", element("h2", "What your answers mean"),
        element("p", "Errors in 95 of 100 cases, for questions that people ask first. The rows are fictional, in the "
                "shape of your answers. Change an answer above, and look again."),
        make_table(heads, rows, "Errors of first questions", stacked=True), id="meaning",
    )  # fmt: skip


def _tell_number(value: float | None) -> str:
    return "not known before asking" if value is None else f"± {value:,.4g}"


def _tell_example(each: ExampleError) -> str:
    if each.answer is None:
        return ""
    true = "" if each.true is None else f", and in truth {each.true:,.6g}"
    return f"answered {each.answer:,.6g}{true}"


def _draw_text(visit: GuideVisit, found: DataFiles, answers: FirstAnswers) -> Html:
    """The codebook, to be copied, or put in its place and served."""
    text = write_codebook(found, answers, visit.folder.path)
    button = element(
        "button", "Keep it, and serve it now", form="guide-form", formaction="/guide/save", id="guide-save"
    )
    return element(
        "section", element("h2", "Your codebook"),
        element("p", "It is put beside the data file, and the dataset is served. You are signed in as its owner, and "
                "make the tokens of those who may ask."),
        element("p", button, class_="actions"),
        element("details", element("summary", "The text"), element("pre", text, class_="secret", tabindex="0")),
    )  # fmt: skip
