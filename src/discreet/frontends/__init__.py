"""Front ends: what people write (SQL, a data-frame chain) becomes a question of ``plan.nodes``.

``sql.py`` and ``builder.py`` only know syntax. Both end in the same terms (``terms.py``) and the same ``resolve.py``,
so that equal questions give equal plans. Nothing here touches an engine or the data.
"""
