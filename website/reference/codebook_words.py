"""docs/reference/codebook.md: the schema of a codebook as tables, one for each kind of entry."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from website.navigation import ROOT
from website.reference.tables import MADE, quote, write_table

_HEADS = ("word", "kind", "default", "meaning")


def write_codebook_words() -> str:
    """The page."""
    schema = json.loads((ROOT / "docs" / "codebook.schema.json").read_text(encoding="utf-8"))
    parts = [
        "# Words of a codebook", MADE,
        "The same as a schema for editors: [codebook.schema.json](../codebook.schema.json). With examples and rules: "
        "[the codebook](../codebook.md).",
        "## The file", write_table(_HEADS, _list_words(schema)),
    ]  # fmt: skip
    for name, kind in sorted(schema["$defs"].items()):
        if "properties" in kind:
            parts += [f"## {name}", kind.get("description", ""), write_table(_HEADS, _list_words(kind))]
        elif "enum" in kind:
            words = ", ".join(quote(str(word)) for word in kind["enum"])
            parts += [f"## {name}", kind.get("description", ""), f"One of {words}."]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def _list_words(kind: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    required = kind.get("required", ())
    for name, word in kind["properties"].items():
        default = "must be given" if name in required else _show_default(word)
        yield quote(name), " or ".join(dict.fromkeys(_list_kinds(word))), default, word.get("description", "")


def _show_default(word: Mapping[str, Any]) -> str:
    return "" if word.get("default") in (None, {}, []) else quote(json.dumps(word["default"], ensure_ascii=False))


def _list_kinds(word: Mapping[str, Any]) -> Iterator[str]:
    for choice in word.get("anyOf", word.get("oneOf", ())):
        yield from _list_kinds(choice)
    if "$ref" in word:
        name = word["$ref"].rpartition("/")[2]
        yield f"[{name}](#{name.lower()})"
    elif "const" in word or "enum" in word:
        yield from (quote(json.dumps(value)) for value in word.get("enum", [word.get("const")]))
    elif word.get("type") == "array":
        items = list(dict.fromkeys(_list_kinds(word.get("items", {}))))
        yield f"list of {', '.join(items)}" if items else "list"
    elif word.get("type") == "object":
        inner = word.get("additionalProperties")
        items = list(dict.fromkeys(_list_kinds(inner))) if isinstance(inner, Mapping) else []
        yield f"table of {', '.join(items)}" if items else "table"
    elif word.get("type") not in (None, "null"):
        yield word.get("format", word["type"])
