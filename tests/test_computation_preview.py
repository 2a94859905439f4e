"""Previews of computations: the price of what is inside, free of charge."""

from __future__ import annotations

from discreet.computation_preview import ComputationPreview
from tests.test_post_processing import BY_WARD, DP, SHARES, curator


def test_all_questions_are_shown_and_priced_together() -> None:
    """Each with its errors; the cost is that of the charge; previewing charges nothing."""
    holder = curator()
    text = f"{BY_WARD} UNION ALL {DP} 'old' AS ward, COUNT(*) AS n FROM visits WHERE age > 65"
    shown = holder.preview(text, share=0.1)
    assert isinstance(shown, ComputationPreview) and len(shown.each) == 2
    assert [column.name for column in shown.columns if column.error] == ["n", "n"]
    document = shown.to_dict()
    assert document["cost"] == shown.cost and len(document["questions"]) == 2 and "released1" in document["computed"]
    assert "released1" in str(shown) and "nothing was charged" in repr(shown)
    assert not holder.history() and not shown.answered
    holder.ask(text, share=0.1)
    assert holder.preview(text, share=0.1).answered


def test_one_question_costs_what_it_costs_alone() -> None:
    """What stands around it is free."""
    holder = curator()
    alone = holder.preview("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1)
    assert holder.preview(SHARES, epsilon=1).loss == alone.loss
    assert "released0" in holder.explain(SHARES)


def test_the_columns_that_will_come_are_shown() -> None:
    """Names and types, with the ends of intervals where a released number is shown as it is; as the answer has them."""
    holder = curator()
    texts = (
        SHARES,
        f"{BY_WARD} UNION ALL {DP} 'old' AS ward, COUNT(*) AS n FROM visits WHERE age > 65",
        f"SELECT ward, n, n * 2.5 AS scaled, n > 3 AS many FROM ({BY_WARD}) t ORDER BY n",
    )
    for text in texts:
        shown = holder.preview(text, share=0.1)
        answer = holder.ask(text, share=0.1)
        assert shown.schema == answer.to_arrow().schema, text
        assert list(shown.to_dict()["schema"]) == shown.schema.names
    assert {"n", "n_low", "n_high", "scaled"} <= set(shown.schema.names) and "scaled_low" not in shown.schema.names


def test_notebooks_show_tables() -> None:
    """Each question as a table, then what is computed, the columns, the cost and what is left."""
    html = curator().preview(SHARES, share=0.1)._repr_html_()
    assert html.count("<table>") == 1 and "released0" in html and "columns" in html and "nothing was charged" in html
