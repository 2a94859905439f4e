"""What was reserved, charged and released: the durable record behind every guarantee.

- ``ledger``: the protocol of spending, and what is written down.
- ``chain``: the log's lines, each of which holds the hash of the one before.
- ``policy``: caps over analysts, projects, questions and periods.
- ``state``: what the lines add up to.
- ``book``: the protocol over any store, with group commit.
- ``memory``, ``sqlite``, ``postgres``: the stores.
- ``administration``, ``burndown``: verify, history, exports and pictures.
- ``check_log``: a program of its own that checks an exported log with nothing but the standard library.
"""
