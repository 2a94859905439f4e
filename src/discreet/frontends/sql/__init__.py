"""SQL to terms: an allow-list over the tree that sqlglot makes.

In reading order: ``places`` finds nodes in the text. ``refusals`` says why known SQL is refused. ``reader`` walks the
tree by a table of forms. ``function_tables`` lists how functions are written. ``aggregates``, ``functions`` and
``expression_forms`` are the forms, and ``inner_forms`` are those of subqueries. ``parsing`` makes the tree of a text.
``grouping``, ``with_clause``, ``from_clause`` and ``select_clauses`` read the clauses. ``script`` splits a text with
several questions.
"""
