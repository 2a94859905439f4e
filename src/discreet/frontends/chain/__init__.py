"""A data-frame chain to a question, by the same terms and the same ``resolve`` as SQL.

In reading order: ``operands`` are expressions such as ``col("age") > 30``. ``aggregates`` are ``count``, ``mean`` and
the others. ``row_sources`` makes joins and rows per unit. ``builder`` is the chain itself.
"""
