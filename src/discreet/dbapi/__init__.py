"""Python's database standard (PEP 249) over a curator, at home or on a server.

    connection = discreet.dbapi.connect("hospital.toml", share=0.02)
    cursor = connection.cursor()
    cursor.execute("SELECT ward, COUNT(*) AS n FROM visits WHERE age > :age GROUP BY ward", {"age": 40})

Every question costs; what it may cost is said when connecting, by ``SET discreet.share = 0.02``, or in the text of the
question itself. One without a stated cost is refused.
"""

from discreet.dbapi.connection import Connection, connect
from discreet.dbapi.cursor import Cursor
from discreet.dbapi.exceptions import (
    DatabaseError,
    DatabaseWarning,
    DataError,
    DbapiError,
    IntegrityError,
    InterfaceError,
    InternalDatabaseError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
)
from discreet.dbapi.type_objects import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
)

apilevel = "2.0"
threadsafety = 2
"""Threads may share the module and connections."""
paramstyle = "named"

# The names that the standard asks for; inside the house every class has a name of its own.
Error = DbapiError
Warning = DatabaseWarning  # noqa: A001  # the standard's name
InternalError = InternalDatabaseError

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
