"""Metadata for catalogs of data: Croissant (JSON-LD with schema.org words), with DCAT's link to what it replaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TYPES = {
    "boolean": "sc:Boolean",
    "integer": "sc:Integer",
    "real": "sc:Float",
    "text": "sc:Text",
    "date": "sc:Date",
    "timestamp": "sc:DateTime",
}


def make_croissant(manifest: Mapping[str, Any], hashes: Mapping[str, str]) -> dict[str, Any]:
    """A description of the bundle's rows and tables; ``hashes`` are those of its Parquet files."""
    found: dict[str, Any] = {
        "@context": {
            "@vocab": "https://schema.org/",
            "sc": "https://schema.org/",
            "cr": "http://mlcommons.org/croissant/",
            "dct": "http://purl.org/dc/terms/",
            "dcat": "http://www.w3.org/ns/dcat#",
            "conformsTo": "dct:conformsTo",
            "recordSet": "cr:recordSet",
            "field": "cr:field",
            "dataType": "cr:dataType",
        },
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": manifest["name"],
        "description": f"Differentially private release of {manifest['dataset']}; see disclosure.txt.",
        "version": manifest["plan_digest"][:12],
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": name,
                "contentUrl": name,
                "encodingFormat": "application/vnd.apache.parquet",
                "sha256": digest,
            }
            for name, digest in hashes.items()
        ],
    }
    if "rows" in manifest:
        fields = [
            {
                "@type": "cr:Field",
                "@id": f"rows/{column['name']}",
                "name": column["name"],
                "dataType": _TYPES[column["type"]],
                "source": {"fileObject": {"@id": "synthetic.parquet"}, "extract": {"column": column["name"]}},
            }
            for column in manifest["columns"]
        ]
        found["recordSet"] = [{"@type": "cr:RecordSet", "@id": "rows", "name": "rows", "field": fields}]
    found["dcat:version"] = manifest["plan_digest"][:12]
    if manifest["supersedes"]:
        found["dcat:previousVersion"] = manifest["supersedes"]
    return found
