"""Questions as immutable values: types, expressions, relations, and the functions that a question may use.

In reading order: ``types`` and ``expressions`` are values and what is computed from one row. ``functions`` lists every
function, and ``evaluate`` says what each one means; ``magnitude`` is one of them. ``catalog`` holds what is publicly
known of the tables. ``relations`` are the rows that a question reads, and ``reach`` joins a table to its unit.
``nodes`` is a whole question, and ``show`` prints one. ``arrow`` gives the Arrow type of each type.
"""
