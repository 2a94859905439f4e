"""What a privacy parameter means, from the shell: ``discreet explain epsilon 0.5``."""

from __future__ import annotations

from dataclasses import replace

from discreet.cli.output import Printout
from discreet.errors import UsageError

PARAMETERS = ("epsilon", "rho")


def explain_parameter(name: str, value: str) -> Printout:
    """The guide to one value, with its picture. A value that is no number is refused."""
    from discreet.cli.show import make_printout
    from discreet.parameter_guide import GUIDES

    try:
        number = float(value)
    except ValueError:
        raise UsageError(
            f"{value or 'nothing'} is not a number. Write for example: discreet explain {name} 0.5"
        ) from None
    guide = GUIDES[name](number)
    return replace(make_printout([guide.pair], guide.lines), document=guide.to_dict)
