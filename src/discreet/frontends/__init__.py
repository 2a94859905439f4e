"""Front ends: SQL or a data-frame chain becomes a question of ``plan.nodes``. Nothing here touches an engine or data.

In reading order: ``terms`` is the language that all forms share. ``resolve`` turns terms into a plan. ``sql`` reads
SQL, and ``google`` the GoogleSQL form, into terms. ``read_sql`` joins them: it turns a text into a question. ``chain``
turns a chain of Python calls into a question. All forms end in the same terms and the same ``resolve``, so equal
questions give equal plans.
"""
