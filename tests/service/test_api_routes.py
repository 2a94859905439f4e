"""Routes are found by path and method; a dataset that the token does not open is as if it were not there."""

from __future__ import annotations

import pytest

from discreet.service.api_routes import ROOT, find_routes
from discreet.service.routes import TABLE


def test_arguments_are_read_from_the_path() -> None:
    """The part in braces, and nothing else."""
    found = find_routes(TABLE, f"{ROOT}datasets/hospital/tokens/a.b/revoke", "hospital")
    assert found["POST"][1] == "a.b"
    both = find_routes(TABLE, f"{ROOT}datasets/hospital/tokens", "hospital")
    assert both.keys() == {"GET", "POST"}


@pytest.mark.parametrize(
    "path",
    ["", "/", ROOT, f"{ROOT}datasets/other", f"{ROOT}datasets/hospital/", f"{ROOT}datasets/hospital/ask/",
     "/api/v2/datasets", f"{ROOT}datasets/hospital/ask/../ask", f"{ROOT}requests"],
)  # fmt: skip
def test_other_paths_are_nothing(path: str) -> None:
    """Neither another dataset nor a longer path nor another version."""
    assert find_routes(TABLE, path, "hospital") == {}
