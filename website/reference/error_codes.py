"""docs/reference/errors.md: every error with its code, its exit code and who has to act."""

from __future__ import annotations

from collections.abc import Iterator

from discreet import errors
from website.reference.tables import MADE, quote, read_summary, write_table


def write_error_codes() -> str:
    """The page."""
    rows = (_describe(kind) for kind in list_errors(errors.DiscreetError))
    parts = (
        "# Error codes", MADE,
        "The code is in `error.code`, in the JSON of a command and in the answer of a service; `discreet help CODE` "
        "explains it. The tree is that of the classes: catch a class to catch what stands below it.",
        write_table(("code", "class", "exit", "below", "meaning"), rows),
    )  # fmt: skip
    return "\n\n".join(part.strip() for part in parts) + "\n"


def list_errors(root: type[errors.DiscreetError]) -> Iterator[type[errors.DiscreetError]]:
    """A class and all that stand below it in the project, the upper ones first."""
    yield root
    for child in sorted(root.__subclasses__(), key=lambda kind: kind.code):
        if child.__module__.startswith("discreet."):
            yield from list_errors(child)


def _describe(kind: type[errors.DiscreetError]) -> tuple[str, str, str, str, str]:
    above = ", ".join(quote(base.__name__) for base in kind.__bases__)
    link = f"[{kind.code}](../errors.md#{kind.code})"
    return link, quote(kind.__name__), str(kind.exit_code), above, read_summary(kind)
