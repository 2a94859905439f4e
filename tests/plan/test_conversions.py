"""Files that questions cannot read are refused with the command that converts them."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from discreet.errors import UsageError
from discreet.plan.conversions import advise_conversion
from discreet.plan.source_kinds import kind_of_path, require_kind

COMMANDS = {
    "https://example.org/visits.csv?key=1": "curl -L -o visits.csv 'https://example.org/visits.csv?key=1'",
    "s3://bucket/a/visits.parquet": "aws s3 cp s3://bucket/a/visits.parquet visits.parquet",
    "gs://bucket/visits.csv": "gcloud storage cp gs://bucket/visits.csv visits.csv",
    "data/notes.jsonl": "discreet import data/notes.jsonl --out data/notes.parquet",
    "notes.ndjson.gz": "discreet import notes.ndjson.gz --out notes.parquet",
    "my notes.json": "discreet import 'my notes.json' --out 'my notes.parquet'",
    "clinic.sqlite": "discreet import clinic.sqlite --table NAME --out NAME.parquet",
    "visits.feather": "discreet import visits.feather --out visits.parquet",
    "visits.xlsx": 'python -c \'import pandas; pandas.read_excel("visits.xlsx").to_parquet("visits.parquet")\'',
    "visits.csv.zip": "unzip visits.csv.zip",
    "visits.dta": "pandas.read_stata",
    "visits.rds": 'Rscript -e \'write.csv(readRDS("visits.rds"), "visits.csv", row.names = FALSE)\'',
}


@pytest.mark.parametrize("path", list(COMMANDS))
def test_the_refusal_has_the_command(path: str) -> None:
    advice = advise_conversion(path)
    assert advice is not None and COMMANDS[path] in advice
    shlex.split(advice.partition(": ")[2])  # a shell can read it
    with pytest.raises(UsageError) as refused:
        require_kind(path)
    assert advice in str(refused.value) and str(refused.value).endswith("Nothing was charged.")


def test_a_folder_is_imported(tmp_path: Path) -> None:
    (tmp_path / "flights").mkdir()
    assert f"discreet import {tmp_path / 'flights'} --types --out" in str(advise_conversion(str(tmp_path / "flights")))


def test_what_can_be_read_needs_no_command() -> None:
    for path in ("a.csv", "a.TSV.gz", "a.txt.zst", "a.psv", "a.parquet", "a.duckdb", "b/*.csv.bz2"):
        assert kind_of_path(path) is not None and advise_conversion(path) is None
    assert kind_of_path("a.parquet.gz") is None and advise_conversion("a.docx") is None
