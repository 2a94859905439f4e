"""Attacks: runnable lessons about what goes wrong without privacy, and how far each attack gets with it.

Each lesson makes fictional data. It runs an attack on exact or naively protected statistics, and then on answers of
discreet. It reports both success rates with the bound. The lessons ask like any analyst, through public functions.
"""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

from discreet.parameters import find_name

if TYPE_CHECKING:
    from discreet.attacks.outcome import Outcome

__all__ = ["LESSONS", "find", "run"]

LESSONS = MappingProxyType(
    {
        "linkage": "names from a file without names: ZIP code, birth date, sex",
        "differencing": "everyone minus everyone but one",
        "averaging": "the same question again and again, until the noise is gone",
        "reconstruction": "the whole table, from many subset counts; rounding does not help",
        "census": "the residents of a block, from tables of counts, means and medians",
        "membership": "who took part in a study, from allele frequencies",
        "synthetic-rows": "who is in the data, from rows that were made up",
        "sparse-ratings": "a subscriber's record, from a few films they saw",
        "float-bits": "the true count, from the last digits of naive noise",
        "sum-order": "one row that moves a float sum by sixteen times its bound",
        "timing": "the size of the noise, from the time it took",
        "error-oracle": "a free bit from every question that fails",
        "long-text": "a text that is too long for the memory, if somebody is old",
        "fan-out": "one row that becomes millions, if somebody is old",
        "second-draw": "a question interrupted and asked again, until the noise is gone",
        "bad-bytes": "one person's bytes that no engine can read",
        "open-quote": "one person's quote that swallows the rest of the file",
        "second-budget": "the same data under another name, with a budget of its own",
        "first-row": "a person's values as the names of columns, in a public file",
        "unsaved-report": "reports that were given out and never remembered",
        "left-copy": "the copy of the data that a killed program leaves behind",
        "poisoning": "fake reports in a private survey; here privacy makes it worse",
        "collusion": "many analysts with a small budget each",
    }
)
"""Every lesson by its name, with what the attacker wants or has. The lesson's module has the name with underscores."""


def find(name: str) -> str:
    """The lesson of this name, or of an unambiguous part of its name.

    >>> find("float_bits"), find("Ratings"), find("census-style")
    ('float-bits', 'sparse-ratings', 'census')
    """
    return find_name(name, LESSONS, "attack")


def run(name: str) -> Outcome:
    """Run one lesson in its full size, in a few seconds.

    >>> outcome = run("differencing")
    >>> outcome.raw.value, outcome.holds
    (1.0, True)
    """
    lesson = find(name)
    module = import_module(f"discreet.attacks.{lesson.replace('-', '_')}")
    outcome: Outcome = module.run()
    return outcome
