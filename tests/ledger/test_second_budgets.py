"""Ways to a second budget for one dataset: links, copies, swapped files, older dumps. Each one stops with an error."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import discreet
from discreet.codebook import Codebook
from discreet.errors import LedgerDamaged, LedgerError
from discreet.ledger.chain import digest
from discreet.ledger.other_ledgers import find_other_ledger
from discreet.ledger.postgres import _import_psycopg
from discreet.ledger.sqlite import SQLiteLedger
from discreet.opening import schema_of
from tests.cli.commands import Run
from tests.ledger.charges import charge, open_sqlite
from tests.ledger.server import server

COUNT = "SELECT COUNT(*) AS n FROM visits"
SUM = "SELECT COUNT(*) AS m FROM visits WHERE age > 50"


def spend(codebook: Path) -> discreet.Curator:
    """A curator that has asked one question."""
    holder = discreet.open(codebook)
    holder.ask(COUNT, epsilon=0.5)
    return holder


def test_a_symbolic_link_has_the_same_ledger(hospital: Path, tmp_path: Path) -> None:
    """Under another name and in another folder, what was spent is spent."""
    with spend(hospital) as holder:
        left = holder.remaining
    link = tmp_path / "elsewhere.toml"
    link.symlink_to(hospital)
    with discreet.open(link) as holder:
        assert holder.remaining == left
    folder = tmp_path / "folder"
    folder.symlink_to(hospital.parent)
    with discreet.open(folder / hospital.name) as holder:
        assert holder.remaining == left
    assert not link.with_suffix(".ledger").exists()


def test_a_hard_link_gets_no_ledger(hospital: Path, tmp_path: Path) -> None:
    """Neither beside the ledger nor elsewhere; the name with the ledger goes on."""
    hospital.write_text(hospital.read_text().replace('source = "', f'source = "{hospital.parent}/'))
    spend(hospital).close()
    for link in (hospital.with_name("other.toml"), tmp_path / "other.toml"):
        os.link(hospital, link)
        with pytest.raises(LedgerError, match=r"second name.*Nothing was charged"):
            discreet.open(link)
        assert not link.with_suffix(".ledger").exists()
    discreet.open(hospital).close()


def test_a_renamed_copy_gets_no_ledger(hospital: Path, tmp_path: Path) -> None:
    """In the same folder, or in another one as long as the ledger lies beside the data."""
    spend(hospital).close()
    copy = hospital.with_name("copy.toml")
    shutil.copy(hospital, copy)
    with pytest.raises(LedgerError, match=r"no ledger copy\.ledger, but .*hospital\.ledger is one"):
        discreet.open(copy)
    copy.write_text('ledger = "hospital.ledger"\n' + copy.read_text())
    with discreet.open(copy) as renamed, discreet.open(hospital) as holder:
        assert renamed.remaining == holder.remaining and len(renamed.history()) == 1
    far = tmp_path / "far.toml"
    far.write_text(hospital.read_text().replace('source = "', f'source = "{hospital.parent}/'))
    with pytest.raises(LedgerError, match=r"hospital\.ledger is one of this dataset"):
        discreet.open(far)


def test_a_backup_or_a_head_of_the_dataset_stops_a_new_ledger(hospital: Path) -> None:
    """Whatever their names are. Another dataset's do not."""
    with spend(hospital) as holder:
        assert isinstance(holder._ledger, SQLiteLedger)
        known = holder._ledger.state.ledger
        holder._ledger.backup(hospital.with_name("monday"))
    for end in ("", ".head"):
        hospital.with_name(f"hospital.ledger{end}").unlink()
    with pytest.raises(LedgerError, match="monday is one"):
        discreet.open(hospital)
    path = hospital.with_name("new.ledger")
    assert find_other_ledger([hospital.parent], dataset="school", ledger_id=None, but=path) is None
    assert find_other_ledger([hospital.parent], dataset="school", ledger_id=known, but=path) is not None
    hospital.with_name("monday").unlink()
    head = hospital.with_name("old.head")
    head.write_text(f'{{"ledger":"{known}","number":3,"hash":"ab"}}')
    assert find_other_ledger([hospital.parent], dataset="hospital", ledger_id=known, but=path) == head
    assert find_other_ledger([hospital.parent], dataset="hospital", ledger_id="another", but=path) is None


def test_the_codebook_names_its_ledger(hospital: Path) -> None:
    """The first line carries the codebook's ledger_id; a ledger with another one is refused."""
    text = hospital.read_text()
    hospital.write_text('ledger_id = "one-of-many"\n' + text)
    with spend(hospital) as holder:
        assert isinstance(holder._ledger, SQLiteLedger) and holder._ledger.state.ledger == "one-of-many"
    hospital.write_text('ledger_id = "another-one"\n' + text)
    with pytest.raises(LedgerError, match="ledger_id names"):
        discreet.open(hospital)


def test_init_writes_a_ledger_id(hospital: Path, run: Run) -> None:
    """Two codebooks get two."""
    found = []
    for name in ("a.toml", "b.toml"):
        code, _, _ = run(
            "init", next(hospital.parent.glob("*.parquet")), "--out", hospital.with_name(name), "--yes",
            "--unit", "row", "--epsilon", "1",
        )  # fmt: skip
        assert code == 0
        found.append(Codebook.load(hospital.with_name(name)).ledger_id)
    assert None not in found and found[0] != found[1]


def test_a_swapped_file_stops_an_open_ledger(hospital: Path) -> None:
    """The folder is renamed and copied back: who has the old file open is stopped at the next transaction."""
    with spend(hospital) as holder:
        moved = hospital.parent.with_name("moved")
        hospital.parent.rename(moved)
        shutil.copytree(moved, hospital.parent)
        with pytest.raises(LedgerDamaged, match="Another file was put in the place"):
            holder.ask(SUM, epsilon=0.1)
    with spend(hospital) as holder:
        hospital.with_suffix(".ledger").rename(hospital.with_name("away"))
        with pytest.raises(LedgerDamaged, match="gone from its place"):
            holder.ask(SUM, epsilon=0.1)


def test_a_swap_inside_a_transaction_is_noticed(tmp_path: Path) -> None:
    """The file is compared again before the commit."""
    with open_sqlite(tmp_path) as book:
        store = book._store
        store.begin(write=True)
        (tmp_path / "hospital.ledger").rename(tmp_path / "away")
        shutil.copy(tmp_path / "away", tmp_path / "hospital.ledger")
        with pytest.raises(LedgerDamaged, match="Another file"):
            store.commit()
        store.rollback()


def test_two_names_of_a_ledger(tmp_path: Path) -> None:
    """A link leads to the ledger and its head; a hard link, which would have a log of its own, is refused."""
    with open_sqlite(tmp_path) as book:
        book.reserve(charge("r"))
    (tmp_path / "link").symlink_to(tmp_path / "hospital.ledger")
    with SQLiteLedger.open_existing(tmp_path / "link") as book:
        book.reserve(charge("s"))
    assert not (tmp_path / "link.head").exists()
    os.link(tmp_path / "hospital.ledger", tmp_path / "twin")
    for name in ("hospital.ledger", "twin"):
        with pytest.raises(LedgerDamaged, match="second name"):
            SQLiteLedger.open_existing(tmp_path / name)
    (tmp_path / "twin").unlink()
    os.link(tmp_path / "hospital.ledger", tmp_path / f".hospital.ledger.{'0' * 16}")  # its maker was killed in between
    open_sqlite(tmp_path).close()


def test_a_second_opening_in_one_process_loses_nothing(tmp_path: Path) -> None:
    """A handle that is closed beside an open store would drop its locks, and another process remove its log."""
    other = (
        "import sys; from pathlib import Path; from tests.ledger.charges import charge, open_sqlite\n"
        "with open_sqlite(Path(sys.argv[1])) as book: book.reserve(charge(sys.argv[2]))"
    )
    with open_sqlite(tmp_path) as book:
        book.reserve(charge("a"))
        with open_sqlite(tmp_path):
            pass
        find_other_ledger([tmp_path], dataset="x", ledger_id=None, but=tmp_path / "new.ledger")
        subprocess.run([sys.executable, "-c", other, tmp_path, "b"], check=True)  # noqa: S603  # our own program
        book.reserve(charge("c"))
        subprocess.run([sys.executable, "-c", other, tmp_path, "d"], check=True)  # noqa: S603  # our own program
        assert len(book.history()) == 4


def connect_postgres(hospital: Path) -> tuple[discreet.Curator, str]:
    """A curator whose ledger is in a database of the tests, with one answer; and the ledger's schema."""
    name = f"second{os.getpid()}{abs(hash(str(hospital))) % 10**9}"
    text = hospital.read_text().replace('name = "hospital"', f'name = "{name}"')
    hospital.write_text(f'ledger = "{server().address}"\n{text}')
    return spend(hospital), schema_of(name)


def test_a_dropped_schema_is_not_begun_anew(hospital: Path) -> None:
    """The head file beside the codebook says that there was a ledger, for databases, too."""
    holder, schema = connect_postgres(hospital)
    holder.close()
    with _import_psycopg().connect(server().address, autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA "{schema}" CASCADE')
        with pytest.raises(LedgerDamaged, match=r"gone from the database, but hospital\.ledger\.head"):
            discreet.open(hospital)
        found = connection.execute(f"SELECT count(*) FROM pg_namespace WHERE nspname = '{schema}'").fetchone()
        assert found == (0,)
    hospital.write_text(hospital.read_text().partition("\n")[2])  # from the database to a file
    with pytest.raises(LedgerDamaged, match=r"hospital\.ledger is gone"):
        discreet.open(hospital)


def test_an_older_dump_is_noticed_and_can_be_declared(hospital: Path, run: Run) -> None:
    """A curator that is open, and one that opens later, stop; ``restore`` goes on with what was spent."""
    holder, schema = connect_postgres(hospital)
    left = holder.remaining
    with _import_psycopg().connect(server().address, autocommit=True) as connection:
        connection.execute(f'SET search_path TO "{schema}"')
        first = connection.execute("SELECT line FROM lines WHERE number = 0").fetchone()[0]
        connection.execute("ALTER TABLE lines DISABLE TRIGGER USER; ALTER TABLE reservations DISABLE TRIGGER USER")
        connection.execute("DELETE FROM leases; DELETE FROM reservations; DELETE FROM lines WHERE number > 0")
        connection.execute("UPDATE head SET number = 0, hash = %s", (digest(first),))
    with pytest.raises(LedgerDamaged, match="not the one it was"):
        holder.ask(SUM, epsilon=0.1)
    holder.close()
    with pytest.raises(LedgerDamaged, match="older than the head"):
        discreet.open(hospital)
    code, _, _ = run("ledger", "restore", hospital, "--by", "cora", "--reason", "the disk broke")
    assert code == 0
    with discreet.open(hospital) as holder:
        assert holder.remaining == left
