"""Publish: a release that is paid for once, and then answers for ever: tables, synthetic rows, and their errors.

    bundle = discreet.publish("plan.toml", out="bundle/")
    bundle.ask("SELECT ward, COUNT(*) AS n FROM release GROUP BY ward")
    bundle.synthetic.to_pandas()

``discreet.publish`` is this package, which can be called: Python gives a package's attribute and its function one name.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

# What is offered by name; each loads when it is first used, so that importing discreet stays quick.
_MEMBERS = {
    "Bundle": "discreet.publish.bundle",
    "ReleasePlan": "discreet.publish.release_plan",
    "SeriesMechanism": "discreet.series.mechanism",
    "check_columns": "discreet.publish.column_check",
    "check_rows": "discreet.publish.metered_check",
    "go_on": "discreet.publish.publication",
    "preview": "discreet.publish.publication",
    "verify": "discreet.publish.verification",
}


class _CallablePackage(ModuleType):
    """A package that does what its name says."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        from discreet.publish.publication import publish

        return publish(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        if name not in _MEMBERS:
            raise AttributeError(f"module 'discreet.publish' has no attribute {name!r}")
        return getattr(import_module(_MEMBERS[name]), name)


sys.modules[__name__].__class__ = _CallablePackage
