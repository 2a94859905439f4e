"""Where the database is: said by the environment alone, because an address may hold a password."""

from __future__ import annotations

import os

from discreet.errors import UsageError

ADDRESS = "DISCREET_POSTGRES"
"""The environment variable that says where the database is: a URL, or words such as ``service=clinic``."""


def find_address() -> str:
    """The address in the environment; refused where there is none."""
    address = os.environ.get(ADDRESS, "")
    if not address.strip():
        raise UsageError(
            f"Where the database is must stand in the environment: set {ADDRESS}, for example to "
            "postgresql://reader@host/clinic. Nothing was charged."
        )
    return address
