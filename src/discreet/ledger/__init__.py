"""The durable record of what was reserved, charged and released. Every guarantee depends on it.

- ``ledger``: the protocol of spending, and the records that it writes.
- ``ledger_terms``: the dataset, unit, neighbours, budget and policy that a ledger is for.
- ``chain``: the lines of the log, each of which contains the hash of the one before.
- ``policy``: caps over analysts, projects, questions and periods.
- ``state``: the sums and rules that follow from the lines.
- ``base_ledger``: the protocol over any store; ``group_commit``: many threads, one transaction.
- ``frame_index``: where to look for earlier draws.
- ``memory``, ``sqlite``, ``postgres``: the ledgers; ``store``, ``buffered_store``, ``sqlite_store``: their stores.
- ``administration``, ``burndown``: verification, history, exports and pictures.
- ``check_log``: a separate program that checks an exported log with the standard library alone.
"""
