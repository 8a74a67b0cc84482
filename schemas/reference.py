"""Writes the reference page of each kind of document from its model.

Guarantee: `docs/reference/<kind>.md` equals `page_of(kind)`, so it has the keys, types, defaults
and descriptions that the loader uses; a test fails if a page is out of date. `python -m
schemas.export` writes the pages. Only `write_pages` has an effect.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from schemas.documents import DOCUMENT_KINDS
from schemas.values.duration import DURATION_PATTERN, format_duration, parse_duration
from schemas.values.names import NAME_PATTERN

DIRECTORY = Path(__file__).parents[1] / "docs" / "reference"
Schema = Mapping[str, Any]

_TYPES = {"string": "text", "boolean": "true or false", "integer": "whole number", "object": "mapping"}
_BY_PATTERN = {NAME_PATTERN: "name", DURATION_PATTERN: "duration"}


def page_of(kind: str) -> str:
    schema = DOCUMENT_KINDS[kind].model_json_schema(mode="validation")
    parts = _parts(schema)
    lines = [
        f"# {kind}",
        "",
        str(schema["description"]),
        "",
        "[rules.md](../rules.md) has examples and explanations. This page is generated from the model;",
        f"`tocsin schema {kind}` prints its JSON Schema.",
        "",
        *_table(schema, parts),
    ]
    for name, path in parts.items():
        part = schema["$defs"][name]
        lines += ["", f"## {path}", "", str(part["description"]), "", *_table(part, parts)]
    return "\n".join(lines) + "\n"


def write_pages(directory: Path = DIRECTORY) -> list[Path]:
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for kind in DOCUMENT_KINDS:
        path = directory / f"{kind}.md"
        path.write_text(page_of(kind), encoding="utf-8")
        written.append(path)
    return written


def _parts(schema: Schema) -> dict[str, str]:
    """The models inside a document, by the first path of keys that leads to each, outer ones
    first."""
    definitions = schema.get("$defs", {})
    paths: dict[str, str] = {}
    pending = [("", schema)]
    while pending:
        path, part = pending.pop(0)
        for key, field in part.get("properties", {}).items():
            below = f"{path}.{key}" if path else key
            for name in _referenced(field):
                if name not in paths and "properties" in definitions[name]:
                    paths[name] = below
                    pending.append((below, definitions[name]))
    return paths


def _referenced(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield _name(schema["$ref"])
        for key, value in schema.items():
            if key not in ("examples", "default"):
                yield from _referenced(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _referenced(item)


def _table(schema: Schema, parts: Mapping[str, str]) -> Iterator[str]:
    yield "| key | type | default | meaning |"
    yield "|---|---|---|---|"
    required = schema.get("required", ())
    for key, field in schema.get("properties", {}).items():
        default = "required" if key in required else _default(field)
        yield f"| `{key}` | {_cell(_type(field, parts))} | {_cell(default)} | {_cell(_meaning(field))} |"


def _meaning(field: Schema) -> str:
    description = str(field.get("description", "")).strip()
    if any(_has_all_values(choice) for choice in (field, *field.get("anyOf", ()))):
        return description
    examples = " or ".join(f"`{_value_text(example)}`" for example in field.get("examples", ()))
    return f"{description} Example: {examples}" if examples else description


def _has_all_values(field: Schema) -> bool:
    """Whether the type lists every value, so that an example adds nothing."""
    return "enum" in field or "const" in field or field.get("type") == "boolean"


def _default(field: Schema) -> str:
    default = field.get("default")
    if default is None or default in ("", [], {}):
        return ""
    if isinstance(default, str) and field.get("pattern") == DURATION_PATTERN:
        default = format_duration(parse_duration(default))
    return f"`{_value_text(default)}`"


def _type(field: Schema, parts: Mapping[str, str]) -> str:
    if "$ref" in field:
        path = parts.get(_name(field["$ref"]))
        return f"[{path}](#{path.replace('.', '')})" if path else "mapping"
    choices = [
        choice for key in ("anyOf", "oneOf") for choice in field.get(key, ()) if choice.get("type") != "null"
    ]
    if choices:
        return " or ".join(dict.fromkeys(_type(choice, parts) for choice in choices))
    if "const" in field:
        return f"`{_value_text(field['const'])}`"
    if "enum" in field:
        return " or ".join(f"`{_value_text(value)}`" for value in field["enum"])
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}), parts)}"
    if "properties" in field:
        keys = ", ".join(f"{key}: {_type(member, parts)}" for key, member in field["properties"].items())
        return f"`{{{keys}}}`"
    if field.get("pattern") in _BY_PATTERN:
        return _BY_PATTERN[field["pattern"]]
    return _TYPES.get(str(field.get("type")), str(field.get("type", "any JSON")))


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
