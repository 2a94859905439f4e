"""Runs one statement of a session: settings, transactions and cursors here, the catalog in memory, questions by the
curator.

A transaction is a word for clients alone. A charge is never rolled back: what was told cannot be taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from discreet.wire import refusals
from discreet.wire.backend_messages import Severity, TransactionState, WireColumn, WireNotice, tell_settings
from discreet.wire.catalog_queries import SelectAim, bind_values, find_aim, write_query
from discreet.wire.copying import read_copy
from discreet.wire.projections import AnswerPick, take_projections
from discreet.wire.refusals import WireRefused
from discreet.wire.results import (
    StatementResult,
    describe_preview,
    make_answer_result,
    make_catalog_result,
    make_text_result,
)
from discreet.wire.session_settings import COSTS, WORDS, SessionSettings, read_word
from discreet.wire.statement_words import (
    StatementKind,
    WireStatement,
    read_assignment,
    read_stated,
)
from discreet.wire.value_types import WireType

if TYPE_CHECKING:
    from discreet.answer import Answer
    from discreet.wire.catalog_database import CatalogDatabase
    from discreet.wire.catalog_queries import CatalogContext
    from discreet.wire.questions import QuestionDoor

_PLAN = "QUERY PLAN"
_KEPT = "A charge is never rolled back: what was answered in this transaction stays charged."
_READ_ONLY = "Nothing can be written here."
_ASK = "Ask a SELECT of aggregates, such as SELECT COUNT(*) AS n FROM visits."


class StatementRunner:
    """The statements of one session, and what they change in it."""

    def __init__(
        self,
        door: QuestionDoor,
        settings: SessionSettings,
        catalog: Callable[[], CatalogDatabase],
        make_context: Callable[[], CatalogContext],
    ) -> None:
        self.settings = settings
        self.state = TransactionState.IDLE
        self._door, self._catalog, self._make_context = door, catalog, make_context
        self._before: dict[str, str] | None = None
        self._charged = False

    def run(self, statement: WireStatement, values: Sequence[Any]) -> StatementResult:
        """The result of a statement with the values of its parameters."""
        kind = statement.kind
        ending = kind in (StatementKind.COMMIT, StatementKind.ROLLBACK)
        if self.state is TransactionState.FAILED and not ending:
            rule = "The transaction has failed; statements are ignored until its end."
            raise WireRefused(refusals.FAILED_TRANSACTION, rule, "Send ROLLBACK.")
        match kind:
            case StatementKind.SELECT:
                return self._select(statement, values)
            case StatementKind.COPY:
                inner, options = read_copy(statement)
                found = self._select(inner, values)
                return _replace(found, tag=found.tag.replace("SELECT", "COPY"), copy=options)
            case StatementKind.EXPLAIN:
                return self._explain(statement, values)
            case StatementKind.BEGIN | StatementKind.COMMIT | StatementKind.ROLLBACK | StatementKind.SAVEPOINT:
                return self._change_transaction(statement)
            case StatementKind.SET | StatementKind.RESET | StatementKind.SHOW:
                return self._change_setting(statement)
            case StatementKind.PASSED_OVER:
                return StatementResult(tag=statement.words[0].upper)
            case _:
                raise WireRefused(refusals.READ_ONLY, _READ_ONLY, _ASK, place=0)

    def describe(self, statement: WireStatement, values: Sequence[Any]) -> tuple[WireColumn, ...] | None:
        """The columns that a statement will give; None where it gives no rows. Free in every case."""
        match statement.kind:
            case StatementKind.SELECT:
                stated = read_stated(statement)
                aim, _ = find_aim(stated.statement.text, self._catalog().tables)
                if aim is SelectAim.CATALOG:
                    return self._select(statement, values).columns
                inner, picked = take_projections(stated.statement)
                return self._describe_question(inner, picked, self._find_offer(stated.offer), values)
            case StatementKind.EXPLAIN:
                return (WireColumn(_PLAN, WireType.TEXT),)
            case StatementKind.SHOW:
                return self._change_setting(statement).columns
            case _:
                return None

    def fail(self) -> None:
        """Note that a statement failed: an open transaction has failed, then."""
        if self.state is TransactionState.OPEN:
            self.state = TransactionState.FAILED

    def _select(self, statement: WireStatement, values: Sequence[Any]) -> StatementResult:
        stated = read_stated(statement)
        inner = stated.statement
        aim, tree = find_aim(inner.text, self._catalog().tables)
        if aim is SelectAim.CATALOG and tree is not None:
            bind_values(tree, _number(values))
            return make_catalog_result(self._catalog().run(write_query(tree, self._make_context())))
        offer = self._find_offer(stated.offer)
        inner, picked = take_projections(inner)
        if picked:  # a column that is not there is refused before anything is charged
            self._describe_question(inner, picked, offer, values)
        answer = self._door.ask(inner.text, inner.offset, offer, _number(values))
        self._charged = self._charged or not answer.replayed
        result = make_answer_result(answer)
        columns, rows = result.columns or (), result.rows
        for projection in picked:
            columns, rows = projection.apply(columns, rows)
        notice = _tell_cost(answer) if self.settings.shows_notices else b""
        return StatementResult(tag=f"SELECT {len(rows)}", columns=columns, rows=rows, beside=notice)

    def _describe_question(
        self, inner: WireStatement, picked: Sequence[AnswerPick], offer: Mapping[str, Any], values: Sequence[Any]
    ) -> tuple[WireColumn, ...]:
        columns = describe_preview(self._door.preview(inner.text, inner.offset, offer, _number(values)))
        for projection in picked:
            columns, _ = projection.pick(columns)
        return columns

    def _find_offer(self, stated: Mapping[str, str]) -> dict[str, Any]:
        """What a question may cost: in its own words, else by the settings of the session."""
        for word in stated:
            if word not in WORDS or word == "project":
                known = ", ".join(each for each in WORDS if each != "project")
                raise WireRefused(refusals.SYNTAX_ERROR, "WITH DP(...) has an unknown word.", f"Known are {known}.")
        own = {word: read_word(word, value) for word, value in stated.items()}
        offer = self.settings.make_offer()
        if any(word in COSTS for word in own):
            offer = {word: value for word, value in offer.items() if word not in COSTS}
        return {**offer, **own}

    def _explain(self, statement: WireStatement, values: Sequence[Any]) -> StatementResult:
        """The preview of a question, a line in each row."""
        words = statement.words
        at = next((n for n, word in enumerate(words) if word.upper in ("SELECT", "WITH", "FROM", "VALUES")), None)
        said = {word.upper for word in words[:at]}
        if at is None or "ANALYZE" in said:
            rule = "EXPLAIN takes a SELECT, and shows what it would cost without asking it."
            raise WireRefused(refusals.FEATURE_NOT_SUPPORTED, rule, "Write EXPLAIN SELECT ....", place=0)
        stated = read_stated(statement.cut(words[at].start))
        inner, offer = take_projections(stated.statement)[0], self._find_offer(stated.offer)
        aim, _ = find_aim(inner.text, self._catalog().tables)
        if aim is SelectAim.CATALOG:
            return make_text_result("EXPLAIN", [_PLAN], [["a query of the catalog: public facts alone, free"]])
        numbered = _number(values)
        if any(word in COSTS for word in offer) or "DIFFERENTIAL_PRIVACY" in inner.text.upper():
            shown = self._door.preview(inner.text, inner.offset, offer, numbered)
        else:
            shown = self._door.preview_curve(inner.text, inner.offset, numbered)
        return make_text_result("EXPLAIN", [_PLAN], [[line] for line in str(shown).splitlines()])

    def _change_transaction(self, statement: WireStatement) -> StatementResult:
        words = [word.upper for word in statement.words]
        match statement.kind:
            case StatementKind.BEGIN:
                if self.state is TransactionState.IDLE:
                    self.state, self._before, self._charged = TransactionState.OPEN, self.settings.save(), False
                return StatementResult(tag="BEGIN" if words[0] == "BEGIN" else "START TRANSACTION")
            case StatementKind.SAVEPOINT:
                return StatementResult(tag=words[0])
            case StatementKind.ROLLBACK if "TO" in words:
                self.state = TransactionState.OPEN
                return StatementResult(tag="ROLLBACK", beside=self._tell_kept())
            case _:
                failed = self.state is TransactionState.FAILED or statement.kind is StatementKind.ROLLBACK
                beside = self._end_transaction(failed=failed)
                return StatementResult(tag="ROLLBACK" if failed else "COMMIT", beside=beside)

    def _end_transaction(self, *, failed: bool) -> bytes:
        beside = self._tell_kept() if failed else b""
        if failed and self._before is not None:
            beside += tell_settings(self.settings.restore(self._before))
        else:
            beside += tell_settings(self.settings.end_local())
        self.state, self._before, self._charged = TransactionState.IDLE, None, False
        return beside

    def _tell_kept(self) -> bytes:
        if not self._charged or not self.settings.shows_notices:
            return b""
        return WireNotice(severity=Severity.NOTICE, code="00000", message=_KEPT).encode()

    def _change_setting(self, statement: WireStatement) -> StatementResult:
        words = [word.upper for word in statement.words]
        rest = "".join(word.value for word in statement.words[1:])
        if words[0] == "SHOW":
            if rest.lower() == "all":
                rows = [[name, value, ""] for name, value in self.settings.list_all().items()]
                return make_text_result("SHOW", ["name", "setting", "description"], rows)
            name = "transaction_isolation" if words[1:2] == ["TRANSACTION"] else rest
            return make_text_result("SHOW", [name.lower()], [[self.settings.show(name)]])
        if words[0] == "RESET":
            return StatementResult(tag="RESET", beside=tell_settings(self.settings.reset(rest)))
        if words[1:2] == ["TRANSACTION"] or "CHARACTERISTICS" in words or words[1:2] in (["ROLE"], ["CONSTRAINTS"]):
            return StatementResult(tag="SET")
        if words[1:2] == ["SESSION"] and words[2:3] == ["AUTHORIZATION"]:
            raise WireRefused(refusals.NOT_ALLOWED, "A session is that of its token.")
        name, value, local = read_assignment(statement)
        if local and self.state is TransactionState.IDLE:
            return StatementResult(tag="SET")
        changed = self.settings.reset(name) if not value else self.settings.set(name, value, local=local)
        return StatementResult(tag="SET", beside=tell_settings(changed))


def _number(values: Sequence[Any]) -> dict[str, Any]:
    return {str(number): value for number, value in enumerate(values, 1)}


def _tell_cost(answer: Answer) -> bytes:
    """What an answer cost, what is left, and what limits it: a notice."""
    detail = "\n".join(f"{title}: {line}" for title, line in answer.list_limits())
    return WireNotice(severity=Severity.NOTICE, code="00000", message=answer.describe_cost(), detail=detail).encode()


def _replace(result: StatementResult, **changes: Any) -> StatementResult:
    from dataclasses import replace

    return replace(result, **changes)
