"""Every ``match`` over a closed set ends in ``assert_never``, so that a new member is missed by the type checker.

The others are over open sets: words of users, values from outside, classes that anybody may add to. They are listed
here with the reason, and each of them refuses, or says that nothing is known, where nothing fits.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.test_house import MODULES

NOTIONS = "a loss may be stated in notions that are not known here"
EVENTS = "an event that is not known has an unknown loss, which is refused"
VALUES = "values of any type come from outside"
PARSER = "classes of the parser, of which all others are refused"
SUM_NAMES = "the names of sums, of which there is one for each order"
ARITHMETIC = "an analyst writes any arithmetic, and few shapes of it are known"
STATEMENTS = "kinds of statements; the others are handed on, give no rows, or are refused"
OPEN = {
    "accounting.account._take_larger": NOTIONS,
    "accounting.calibrate.scale_event": EVENTS,
    "accounting.calibrate._exact_factor": NOTIONS,
    "accounting.calibrate._fits": NOTIONS,
    "accounting.currencies.choose_currency": "pairs of words, most of which do not fit together",
    "accounting.currencies.price": NOTIONS,
    "accounting.events._dump_value": VALUES,
    "accounting.notions._set_slack": NOTIONS,
    "accounting.notions._take_least": NOTIONS,
    "accounting.spending_classes.to_epsilon": SUM_NAMES,
    "accounting.spending_classes.gaussian": SUM_NAMES,
    "accounting.profiles.has_profile": EVENTS,
    "accounting.profiles._make_pair": EVENTS,
    "accounting.profiles.group_event": EVENTS,
    "audit.claims.read": VALUES,
    "audit.greybox.check_distance": "mechanisms of anybody are audited",
    "audit.output_encoding.add": VALUES,
    "bounding.shape.check_expression": "plans may be built by hand, and are checked here",
    "bounding.shape.check_released": "plans may be built by hand, and are checked here",
    "codebook.entry_reader._to_problem": "words of the library that reads codebooks",
    "codebook.entry_reader._find_model": "paths in a file",
    "codebook.rules._ends_of": "bounds of any type stand in a file",
    "codebook.rules._has_too_many_bins": "bounds of any type stand in a file",
    "engines.memory.relations.to_declared_type": VALUES,
    "frontends.outer.column_ends.find": PARSER,
    "frontends.outer.column_ends._read_source": PARSER,
    "frontends.outer.column_ends._add_ends": PARSER,
    "frontends.outer.public_scalars._write_constant": VALUES,
    "frontends.outer.row_counts.add_query": PARSER,
    "frontends.sql.aggregates._read_count": PARSER,
    "frontends.sql.expression_forms._read_is": PARSER,
    "frontends.sql.from_clause._read_source": PARSER,
    "frontends.terms.constants.read_python_value": VALUES,
    "ledger.administration.export": "a word of the user",
    "ledger.state._declare": "a ledger may hold entries of a later version",
    "local.shuffle._shape_of": "protocols are a Protocol, to which anybody may add",
    "mechanisms.composition._fits": NOTIONS,
    "mechanisms.keys._sort_key": VALUES,
    "plan.gaps._find_gaps": "nodes of a plan of every kind, most of which are no gap of any engine",
    "plan.types.type_of": VALUES,
    "service.pages.answer_page.show_request": 'words of a JSON document, the last of which is "unfinished"',
    "sized_error._read_sample": ARITHMETIC,
    "sized_error._read_quotient": ARITHMETIC,
    "sized_error._read_scaled": ARITHMETIC,
    "wire.catalog_queries._rewrite_operator": PARSER,
    "wire.frontend_messages.read_message": "a byte from outside; all others end the connection",
    "wire.session.handle": "messages that need nothing that was prepared; the others follow",
    "wire.session._run": STATEMENTS,
    "wire.session._handle_extended": "messages of the extended protocol; the others were handled before",
    "wire.statement_runner.run": STATEMENTS,
    "wire.statement_runner.describe": STATEMENTS,
    "wire.statement_runner._change_transaction": STATEMENTS,
    "wire.statement_words._list_words": "names of groups in a pattern",
}


def find_matches(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, ast.Match]]:
    """Every match with the function that it stands in."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Match):
            yield inside, node
        own = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else inside
        yield from find_matches(node, own)


def is_closed(node: ast.Match) -> bool:
    """Whether a match ends in ``assert_never``, for everything that is left, and nothing else is caught before."""
    *others, last = node.cases
    caught = isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None and last.guard is None
    earlier = any(isinstance(c.pattern, ast.MatchAs) and c.pattern.pattern is None for c in others)
    return caught and not earlier and ast.unparse(last.body[0]).startswith("assert_never(")


def open_matches() -> list[str]:
    found = []
    for name, path in MODULES.items():
        short = name.removeprefix("discreet.")
        matches = find_matches(ast.parse(path.read_text()))
        found += [f"{short}.{function}" for function, node in matches if not is_closed(node)]
    return found


def test_matches_over_closed_sets_are_closed() -> None:
    """A match without ``assert_never`` is one of the open ones, and each of these is still there."""
    assert sorted(open_matches()) == sorted(OPEN)


def test_the_check_can_fail() -> None:
    """Negative control: a catch-all, an early one, and a missing end are seen."""
    for text, closed in (
        ("match x:\n  case 1: pass\n  case _: assert_never(x)", True),
        ("match x:\n  case 1: pass\n  case never: assert_never(never)", True),
        ("match x:\n  case 1: pass\n  case _: y = 1", False),
        ("match x:\n  case 1: pass", False),
        ("match x:\n  case other if y: pass\n  case _: assert_never(x)", False),
        ("match x:\n  case 1: pass\n  case _ if y: assert_never(x)", False),
    ):
        ((_, node),) = find_matches(ast.parse(text))
        assert is_closed(node) is closed
