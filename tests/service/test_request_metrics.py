"""Counts by route and status; what was typed as a path is never among them."""

from __future__ import annotations

from tests.service.served import Hospital


def test_paths_of_anybody_are_not_shown(served: Hospital) -> None:
    """An unknown path counts under one name, and no name of an analyst, dataset or question appears."""
    served.send("ana", "GET", "secret-path")
    served.send("", "GET", "datasets")
    served.ask("ana", "one")
    text = served.service.metrics.to_text()
    assert 'route="datasets/{dataset}/ask",status="200"} 1' in text
    assert 'route="unknown",status="404"} 1' in text and 'route="unknown",status="401"} 1' in text
    assert not any(word in text for word in ("secret-path", "hospital", "ana", "SELECT"))
