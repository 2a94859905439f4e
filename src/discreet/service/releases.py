"""Releases of a dataset for download: bundles that its owner put into the folder ``NAME.releases`` beside the codebook.

What may go out is said by the ledger and not by the folder: a release that was charged has the hashes of its files on
record, and only bytes with these hashes are sent. So a file that lies there by mistake, or was changed, stays where it
is. The manifest, whose hash is not on record, must repeat the record's own receipt and hashes.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.late_dataclass import dataclass

if TYPE_CHECKING:
    from discreet.curator import Curator
    from discreet.ledger.ledger import Reservation

_MANIFEST = "manifest.json"
_MOST_FOLDERS = 1000
_LARGEST_MANIFEST = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedRelease:
    """A release whose bundle is there and is the one on record, under the number of its charge.

    ``about`` are facts of the manifest, which were released; ``files`` are names with the hashes on record.
    """

    number: int
    folder: Path
    about: Mapping[str, Any]
    manifest: bytes
    files: Mapping[str, str]

    def pack(self) -> bytes | None:
        """The bundle as one file; None where a file is missing or is not the one on record."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made:
            for name, kept in sorted(self.files.items()):
                body = _read_plain(self.folder / name)
                if body is None or hashlib.sha256(body).hexdigest() != kept:
                    return None
                self._add(made, name, body)
            self._add(made, _MANIFEST, self.manifest)
        return packed.getvalue()

    def _add(self, made: zipfile.ZipFile, name: str, body: bytes) -> None:
        # Without a time of its own, the same bundle is the same bytes.
        made.writestr(zipfile.ZipInfo(f"release-{self.number}/{name}"), body, zipfile.ZIP_DEFLATED)


def releases_path_of(codebook: str | Path) -> Path:
    """The folder of the releases of a codebook."""
    return Path(codebook).with_suffix(".releases")


def find_releases(folder: Path, curator: Curator) -> Sequence[OfferedRelease]:
    """The releases of a folder that the ledger of this curator has on record."""
    if not folder.is_dir():
        return ()
    paid = {found.hash: found for found in _list_paid(curator)}
    offered = (_read_release(place, paid) for place in sorted(folder.iterdir())[:_MOST_FOLDERS])
    return [each for each in offered if each is not None]


def _list_paid(curator: Curator) -> Iterator[Reservation]:
    """Charges of releases that were drawn and written."""
    from discreet.publish.publication import PREFIX, find_written

    for entry in curator.history():
        if entry.answered and entry.charge.request.startswith(PREFIX):
            found = curator.ledger.find_request(entry.charge.analyst, entry.charge.request)
            files = find_written(curator.ledger, entry.charge.analyst, entry.charge.request)
            if found is not None and files is not None:
                yield replace(found, record={"files": files})


def _read_release(place: Path, paid: Mapping[str, Reservation]) -> OfferedRelease | None:
    """The release in a folder; None for everything that is not one on record."""
    text = _read_plain(place / _MANIFEST) if place.is_dir() and not place.is_symlink() else None
    if text is None or len(text) > _LARGEST_MANIFEST:
        return None
    try:
        manifest = json.loads(text)
        found = paid[manifest["receipt"]["hash"]]
        files = dict((found.record or {})["files"])
        about = {
            "number": found.number,
            "name": str(manifest["name"]),
            "columns": [str(column["name"]) for column in manifest["columns"]],
            "tables": len(manifest["tables"]),
            "synthetic_rows": int(manifest.get("rows", {}).get("count", 0)),
            "files": sorted([_MANIFEST, *files]),
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    # The names on record are our own; that each is a plain name is looked at all the same.
    plain = all(name == Path(name).name for name in files)
    if manifest.get("files") != files or not plain:
        return None
    return OfferedRelease(number=found.number, folder=place, about=about, manifest=text, files=files)


def _read_plain(path: Path) -> bytes | None:
    """The bytes of a file that is no link."""
    try:
        return None if path.is_symlink() or not path.is_file() else path.read_bytes()
    except OSError:
        return None
