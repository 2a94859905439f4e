"""Statements that compute with released answers: what stands outside of SELECT WITH DIFFERENTIAL_PRIVACY.

In reading order: ``allowed_nodes`` lists the SQL that may stand there. ``row_counts`` bounds its work. ``computation``
is what such a statement becomes. ``column_ends`` carries the ends of intervals along. ``outer_reader`` reads all of it.
"""
