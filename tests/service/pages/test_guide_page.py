"""The guide: from a file to a served dataset with its owner signed in, and for nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.service.data_folder import DataFolder
from discreet.service.pages.site import Site
from discreet.service.routes import Service
from discreet.service.sessions import GUIDE, SessionStore
from tests.service.pages.visitors import Seen, Visitor
from tests.service.served import Hospital

ANSWERS = {"file": "people.csv", "values": "yes", "unit": "person_id", "max_rows": "3", "rows": "500", "epsilon": "3",
           "low-1": "0", "high-1": "110", "keys-2": "north, south"}  # fmt: skip


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A server that has no dataset yet."""
    (tmp_path / "people.csv").write_text(
        "person_id,age,ward\n" + "".join(f"{n},{n % 90},{'north' if n % 2 else 'south'}\n" for n in range(500))
    )
    service = Service(datasets={})
    yield Site(service=service, sessions=SessionStore(service.datasets), guide=DataFolder(tmp_path))
    for dataset in service.datasets.values():
        dataset.close()


def enter(site: Site) -> tuple[Visitor, Seen]:
    visitor = Visitor(site)
    made = visitor.post(f"/once/{site.sessions.make_link(GUIDE)}", {})
    assert made.headers["Location"] == "/guide"
    return visitor, visitor.get("/guide?file=people.csv")


def test_the_way_of_a_new_owner(site: Site, tmp_path: Path) -> None:
    """A file, answers, their meaning, the codebook, the dataset served, a token, a question."""
    visitor, page = enter(site)
    assert "people.csv" in visitor.get("/guide").text and visitor.get("/").headers["Location"] == "/guide"
    key = {"form_key": page.form_key}
    shown = visitor.post("/guide", {**key, **ANSWERS})
    assert shown.status == 200 and "The average of age" in shown.text and "How many rows for each ward" in shown.text
    assert "bounds = [0, 110]" in shown.text and not (tmp_path / "people.toml").exists()
    saved = visitor.post("/guide/save", {**key, **ANSWERS})
    assert saved.headers["Location"] == "/owner", saved.text
    owner = visitor.get("/owner")
    assert "people" in owner.text
    made = visitor.post("/owner/tokens", {"form_key": owner.form_key, "name": "ana", "role": "analyst"})
    assert "discreet_" in made.text
    asked = visitor.ask("SELECT ward, COUNT(*) AS n FROM people GROUP BY ward")
    assert asked.status == 303, asked.text
    assert visitor.post("/guide/save", {"form_key": owner.form_key, **ANSWERS}).status == 422
    assert "people.csv" not in visitor.get("/guide").text  # no second budget for the same rows


def test_wrong_answers_are_told_and_kept(site: Site) -> None:
    visitor, page = enter(site)
    told = visitor.post("/guide", {"form_key": page.form_key, **ANSWERS, "high-1": "old"})
    assert told.status == 422 and "smallest and the largest" in told.text and 'value="old"' in told.text
    assert visitor.get("/guide?file=../people.csv").status == 422


def test_nobody_else_gets_in(site: Site, served: Hospital, tmp_path: Path) -> None:
    """Neither without a session, nor with an analyst's; a guide's session opens no dataset; forms need the key."""
    assert Visitor(site).get("/guide").headers["Location"] == "/sign-in"
    visitor, _ = enter(site)
    assert visitor.post("/guide/save", ANSWERS).status == 403
    assert visitor.get("/owner").headers["Location"] == "/guide"
    assert not (tmp_path / "people.toml").exists()
    both = Site(service=served.service, sessions=SessionStore(served.service.datasets), guide=DataFolder(tmp_path))
    for who, status in (("ana", 303), ("audit", 303), ("olga", 200)):
        person = Visitor(both)
        person.sign_in(served.secrets[who])
        assert person.get("/guide").status == status
