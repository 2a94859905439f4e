"""The site, built once for all its tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from website.build import build_site


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the whole site."""
    folder = tmp_path_factory.mktemp("built") / "site"
    build_site(folder)
    return folder
