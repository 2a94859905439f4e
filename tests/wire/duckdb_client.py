"""A program for a Python of its own: DuckDB with its postgres extension, as a client of the door."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

WARDS = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def main(place: str) -> None:
    """Attach, list, ask, and be refused."""
    import duckdb_extension_postgres_scanner as extension  # type: ignore[import-not-found, unused-ignore]

    (file,) = Path(extension.__file__).parent.rglob("*.duckdb_extension")
    connection = duckdb.connect()
    connection.execute(f"LOAD '{file}'")
    options = "options=''-c discreet.epsilon=0.1''"
    connection.execute(f"ATTACH '{place} {options}' AS h (TYPE postgres, READ_ONLY)")
    tables = {row[2] for row in connection.execute("SHOW ALL TABLES").fetchall()}
    assert tables == {"visits", "patients", "labs", "wards"}, tables
    rows = connection.execute(f"SELECT * FROM postgres_query('h', '{WARDS}')").fetchall()
    assert len(rows) == 8 and len(rows[0]) == 4, rows
    picked = connection.execute(f"SELECT sum(n) FROM postgres_query('h', '{WARDS}')").fetchall()
    assert picked[0][0] == sum(row[1] for row in rows), picked
    refused = ""
    try:
        connection.execute("SELECT ward FROM h.visits").fetchall()
    except duckdb.Error as error:
        refused = str(error)
    assert "Nothing was charged." in refused, refused
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main(sys.argv[1])
