"""The language that SQL and the chain share: terms, before names and types are looked up.

In reading order: ``positions`` says where something stands in a text, and how an error shows it. ``syntax`` has the
terms. ``constants`` reads constants. ``grouping_sets`` makes the sets of ROLLUP, CUBE and GROUPING SETS.
"""
