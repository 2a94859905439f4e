"""The folder whose files the guide may show: its owner named it when the server was started, and nothing else is shown.

Names and sizes are listed. Of a file that is chosen the schema alone is read, and values only with the owner's leave.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from discreet.codebook.data_files import DataFiles, inspect
from discreet.engines import registry
from discreet.errors import UsageError
from discreet.late_dataclass import dataclass

_ENDINGS = (".csv", ".csv.gz", ".tsv", ".parquet")
_MOST_FILES = 200


@dataclass(frozen=True, slots=True)
class DataFolder:
    """One folder, without those below it.

    ``taken`` are the files, or patterns of files, of datasets that are served. They are not shown: a second codebook
    of the same rows would have a budget of its own, and the people in them one too many.
    """

    path: Path
    taken: frozenset[str] = frozenset()

    def list_files(self) -> Sequence[tuple[str, int]]:
        """The data files by name, with their sizes in bytes. A link is no file: it may lead anywhere."""
        found = [
            (file.name, file.stat().st_size)
            for file in sorted(self.path.iterdir())
            if file.name.lower().endswith(_ENDINGS) and file.is_file() and not file.is_symlink()
            and not self._is_taken(file)
        ]  # fmt: skip
        return found[:_MOST_FILES]

    def _is_taken(self, file: Path) -> bool:
        real = os.path.realpath(file)
        return any(real == os.path.realpath(other) or fnmatch(real, other) for other in self.taken)

    def find(self, name: str) -> Path:
        """A file of the list; everything else is refused in the same words."""
        if name not in {known for known, _ in self.list_files()}:
            raise UsageError("There is no such data file in the folder. Choose one of the list. Nothing was read.")
        return self.path / name

    def inspect(self, name: str, *, values: bool) -> DataFiles:
        """The table of a file: its columns, and with leave to read values the types that they show."""
        found = inspect(str(self.find(name)), header=True)
        for table in found.untyped if values else ():
            proposal = registry.propose_types(found.sources[table], table)
            found = found.propose(table, proposal.form, proposal.types)
        return found

    def save(self, name: str, text: str) -> Path:
        """Put a codebook beside its data. One that is there is never written over."""
        path = self.path / f"{name}.toml"
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise UsageError(f"{path.name} is there already. Rename the data file, or serve that codebook.") from None
        except OSError as error:
            raise UsageError(f"{path.name} cannot be written: {error.strerror}. Copy the text instead.") from None
        return path
