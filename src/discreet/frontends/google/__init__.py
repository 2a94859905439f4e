"""The GoogleSQL form: SELECT WITH DIFFERENTIAL_PRIVACY.

In reading order: ``constant_numbers`` reads numbers that are arithmetic. ``clause_options`` reads OPTIONS(...).
``contribution_bounds`` reads the bounds of single aggregates. ``functions`` has the functions that GoogleSQL writes in
another way. ``privacy_clause`` reads a whole question.
"""
