"""From terms to a plan: names become columns, types are checked, and units are kept apart.

In reading order:

- expressions: ``calls`` makes typed calls, and ``rows`` turns terms over one row into expressions.
- rows: ``scope`` says what names mean. ``equalities`` finds equalities between two relations, and ``join_scopes`` joins
  two scopes. ``memberships`` resolves WHERE with IN and EXISTS. ``from_tables`` resolves FROM.
- subqueries: ``select_outputs`` makes the outputs of a SELECT. ``computations`` makes features of one unit.
  ``unit_groups`` resolves GROUP BY inside one unit, ``unit_windows`` windows, and ``unions`` UNION. ``subqueries``
  chooses among them.
- the question: ``output_names`` names outputs. ``correlation`` and ``measurements`` turn aggregates into those of the
  plan. ``resolver`` makes the question.
"""
