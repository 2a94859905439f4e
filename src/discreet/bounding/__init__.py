"""Bounding: from a question to integers that one unit can change only so far. Nothing here reads data.

In reading order: ``structure`` and ``shape`` check that a question is well formed. ``facts`` says what is known of an
expression, and ``stability`` what is known of a relation and whose rows it has. ``limits`` chooses how many rows of a
unit count. ``contributions`` is the bounded question with its sensitivities. ``bound`` makes it from a question.
"""
