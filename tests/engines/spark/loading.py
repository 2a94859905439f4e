"""Arrow tables as Parquet files, which one Spark of the tests' own reads; or the reason why there is none."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from discreet.engines.engine import Engine
from discreet.engines.spark.engine import SparkEngine
from discreet.engines.spark.session import find_java, import_pyspark_sql, start_java
from discreet.plan.catalog import Catalog

_NUMBERS = count()
# One process, little work for each question, and settings that a statement which trusted them would fall over. Tables
# are small and statements long, so that compiling them, by Spark or by Java, would take most of the time;
# ``test_compiled`` asks with all of that on.
SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+ExitOnOutOfMemoryError",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.memory": "2g",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "Asia/Kolkata",
    "spark.sql.files.ignoreCorruptFiles": "true",
}


def missing() -> str:
    """Why there is no Spark; empty where there can be one."""
    if find_spec("pyspark") is None:
        return "PySpark is not installed (pip install 'discreet[spark]')"
    return "" if find_java() else "Java is not installed (Debian: apt-get install openjdk-17-jre-headless)"


# Of every module whose tests ask a real Spark: they run in one process, with one Java.
NEEDS_SPARK = [pytest.mark.spark, pytest.mark.skipif(bool(missing()), reason=missing())]


@lru_cache(maxsize=1)
def spark() -> Any:
    """The Spark of this test run, started when it is first needed."""
    builder = import_pyspark_sql().SparkSession.builder.appName("tests").master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    return start_java(builder)


class LoadedSpark(SparkEngine):
    """An engine over files that were written for it, and that go with it."""

    def __init__(self, tables: Mapping[str, Any], catalog: Catalog, *, session: Any = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="discreet-spark-"))
        written = {name: self.write(table) for name, table in tables.items()}
        super().__init__(written, catalog, spark=session or spark())

    def write(self, table: Any) -> Any:
        if isinstance(table, Path):
            return table
        path = self.folder / f"t{next(_NUMBERS)}.parquet"
        pq.write_table(table, path)
        return path

    def close(self) -> None:
        super().close()
        shutil.rmtree(self.folder)


def open_loaded(tables: Mapping[str, Any], catalog: Catalog) -> Engine:
    """An engine over Arrow tables."""
    return LoadedSpark({name: tables[name] for name in tables if name in catalog.tables}, catalog)
