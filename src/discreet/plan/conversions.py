"""The command that makes a file which can be read out of one which cannot: by its name alone, nothing is opened."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

# Kinds that ``discreet import`` reads and questions do not.
JSON_ENDINGS = (".json", ".jsonl", ".ndjson")
SQLITE_ENDINGS = (".sqlite", ".sqlite3", ".db3")
ARROW_ENDINGS = (".arrow", ".feather", ".ipc")
SQLITE_MARK = b"SQLite format 3\0"

_PANDAS_READERS: Mapping[str, tuple[str, str]] = {
    ".xlsx": ("read_excel", "openpyxl"),
    ".xlsm": ("read_excel", "openpyxl"),
    ".xls": ("read_excel", "xlrd"),
    ".ods": ("read_excel", "odfpy"),
    ".dta": ("read_stata", ""),
    ".sas7bdat": ("read_sas", ""),
    ".sav": ("read_spss", "pyreadstat"),
}
_DOWNLOADS: Mapping[str, Callable[[str, str], str]] = {
    "http": lambda url, name: f"curl -L -o {name} {url}",
    "https": lambda url, name: f"curl -L -o {name} {url}",
    "s3": lambda url, name: f"aws s3 cp {url} {name}",
    "gs": lambda url, name: f"gcloud storage cp {url} {name}",
    "gcs": lambda url, name: f"gcloud storage cp {url.replace('gcs://', 'gs://', 1)} {name}",
}
_UNPACKERS = {".zip": "unzip", ".xz": "xz -dk", ".7z": "7z x"}


def advise_conversion(path: str) -> str | None:
    """What to type before a file can be read; None where its name does not tell.

    >>> advise_conversion("s3://bucket/visits.csv")
    'Fetch it first: aws s3 cp s3://bucket/visits.csv visits.csv'
    >>> advise_conversion("notes.jsonl")
    'Convert it first: discreet import notes.jsonl --out notes.parquet'
    """
    if "://" in path:
        name = PurePosixPath(path.partition("?")[0]).name or "data"
        fetch = _DOWNLOADS.get(path.partition("://")[0].lower())
        words = "Fetch it first" + ("" if fetch is None else f": {fetch(shlex.quote(path), shlex.quote(name))}")
        return words + ("." if fetch is None else "")
    file = Path(path)
    ending = next((part for part in reversed(file.suffixes) if part.lower() not in (".gz", ".zst", ".bz2")), "").lower()
    if file.suffix.lower() in _UNPACKERS:
        return f"Unpack it first: {_UNPACKERS[file.suffix.lower()]} {shlex.quote(path)}"
    if ending in SQLITE_ENDINGS:
        return advise_sqlite(path)
    if ending in (*JSON_ENDINGS, *ARROW_ENDINGS) or file.is_dir():
        types = " --types" if file.is_dir() else ""  # its files may be CSV, which has none
        return f"Convert it first: discreet import {shlex.quote(path)}{types} --out {shlex.quote(_name_parquet(path))}"
    if ending in _PANDAS_READERS:
        reader, needs = _PANDAS_READERS[ending]
        code = f"import pandas; pandas.{reader}({json.dumps(path)}).to_parquet({json.dumps(_name_parquet(path))})"
        packages = " ".join(filter(None, ("pandas", "pyarrow", needs)))
        return f"Convert it first: pip install {packages} && python -c {shlex.quote(code)}"
    if ending == ".rds":
        to = json.dumps(str(file.with_suffix(".csv")))
        code = f"write.csv(readRDS({json.dumps(path)}), {to}, row.names = FALSE)"
        return f"Convert it first: Rscript -e {shlex.quote(code)}"
    return None


def advise_sqlite(path: str) -> str:
    """What to type for a table of a SQLite file, whatever the file is called."""
    return f"Convert each table first: discreet import {shlex.quote(path)} --table NAME --out NAME.parquet"


def _name_parquet(path: str) -> str:
    """A name for the converted file, in the same folder."""
    file = Path(path)
    return str(file.parent / (file.name.partition(".")[0] or "data")) + ".parquet"
