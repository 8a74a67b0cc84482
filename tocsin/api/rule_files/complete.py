"""Completion of a rule file at a place: the keys that a document may have there, or the values of a key.

The place is found by indentation in the lines before it, so the text need not be valid, and no document is
parsed. What may stand there comes from the schemas of the documents, which are the models that `check` uses,
and from the names of the applied documents that a key refers to. A place inside of a flow mapping
(`{...}`) has no completion.

Pure: no I/O. The work is bounded by the number of lines before the place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from schemas.documents import DOCUMENT_KINDS

MOST_LINES = 2_000
_KEY = re.compile(r"(?P<indent>\s*)(?P<items>(?:- +)*)(?P<key>[A-Za-z_][\w-]*):(?: +(?P<value>.*))?$")
_SIMPLE = re.compile(r"[\w.-]*")
_DEEPEST = 12
# The kinds of documents whose names a key takes.
_NAMES = {
    "action": "action",
    "datapoint": "datapoint_type",
    "except": "calendar",
    "fallback": "channel",
    "notify": "channel",
    "only_in": "calendar",
    "schedule": "schedule",
    "severity": "severity",
    "system": "system",
}
Schema = Mapping[str, Any]


class Completion(NamedTuple):
    label: str
    kind: str
    """`key`, `value` or `name`."""
    detail: str = ""


class _Line(NamedTuple):
    indent: int
    """Of the key, after the dashes of list items."""
    key: str


def complete(
    text: str, line: int, column: int, names: Mapping[str, Sequence[str]] | None = None
) -> list[Completion]:
    """What may stand at a place, both numbers from 1. `names` has the applied documents by kind,
    and the severities."""
    lines = text.split("\n")[max(line - MOST_LINES, 0) : line]
    if not lines:
        return []
    before = lines[-1][: column - 1]
    if before.lstrip().startswith("#") or "{" in before:
        return []
    keyed = _KEY.match(before)
    if keyed is not None and keyed["value"] is not None:
        path = _path(lines[:-1], _indent_of(keyed))
        return list(_values([*path, keyed["key"]], keyed["key"], names or {}))
    stripped = before.lstrip(" ")
    dashes = re.match(r"(?:- +)*", stripped)
    assert dashes is not None
    if not _SIMPLE.fullmatch(stripped[dashes.end() :]):
        return []
    indent = len(before) - len(stripped) + dashes.end()
    path = _path(lines[:-1], indent)
    found = list(_keys(path, _siblings(lines[:-1], indent)))
    if dashes.end() and path:
        found += list(_values(path, path[-1], names or {}))
    return found


def _indent_of(match: re.Match[str]) -> int:
    return len(match["indent"]) + len(match["items"])


def _above(lines: Sequence[str]) -> Iterator[_Line]:
    """The keys of the same document, from the last line up."""
    for text in reversed(lines):
        if text.startswith(("---", "...")):
            return
        match = _KEY.match(text)
        if match is not None:
            yield _Line(_indent_of(match), match["key"])


def _path(lines: Sequence[str], indent: int) -> list[str]:
    """The keys around a place, from the kind of the document inwards."""
    path: list[str] = []
    for at, key in _above(lines):
        if at < indent:
            path.insert(0, key)
            indent = at
        if indent == 0 or len(path) > _DEEPEST:
            break
    return path


def _siblings(lines: Sequence[str], indent: int) -> set[str]:
    """The keys that the same mapping has already."""
    found = set()
    for at, key in _above(lines):
        if at < indent:
            break
        if at == indent:
            found.add(key)
    return found


def _keys(path: Sequence[str], there: set[str]) -> Iterator[Completion]:
    if not path:
        if not there:
            yield from (Completion(kind, "key", "document") for kind in DOCUMENT_KINDS)
        return
    seen: set[str] = set()
    for schema, definitions in _schemas_at(path):
        required = schema.get("required", ())
        for key, value in schema.get("properties", {}).items():
            if key not in there and key not in seen:
                seen.add(key)
                yield Completion(key, "key", _detail(value, definitions, key in required))


def _values(path: Sequence[str], key: str, names: Mapping[str, Sequence[str]]) -> Iterator[Completion]:
    seen = set()
    for schema, _ in _schemas_at(path):
        options = list(schema.get("enum", ()))
        options += [schema["const"]] if "const" in schema else []
        options += [True, False] if schema.get("type") == "boolean" else []
        for option in options:
            label = str(option).lower() if isinstance(option, bool) else str(option)
            if label not in seen:
                seen.add(label)
                yield Completion(label, "value")
    for name in names.get(_NAMES.get(key, ""), ()):
        yield Completion(name, "name", _NAMES[key])


def _schemas_at(path: Sequence[str]) -> list[tuple[Schema, Schema]]:
    """The schemas that may hold at a path, each with the definitions that its references name."""
    kind, *inner = path
    if kind not in DOCUMENT_KINDS:
        return []
    root = _schema_of(kind)
    definitions: Schema = root.get("$defs", {})
    found = list(_alternatives(root, definitions))
    for key in inner:
        found = [
            alternative
            for schema in found
            for below in _below(schema, key)
            for alternative in _alternatives(below, definitions)
        ]
    return [(schema, definitions) for schema in found]


@cache
def _schema_of(kind: str) -> Schema:
    return DOCUMENT_KINDS[kind].model_json_schema(by_alias=True)


def _below(schema: Schema, key: str) -> Iterator[Schema]:
    if key in schema.get("properties", {}):
        yield schema["properties"][key]
    elif isinstance(schema.get("additionalProperties"), dict):
        yield schema["additionalProperties"]


def _alternatives(schema: Schema, definitions: Schema, depth: int = 0) -> Iterator[Schema]:
    """The schema without references; each item of a list, because an item stands where the list does."""
    if depth > _DEEPEST:
        return
    if "$ref" in schema:
        yield from _alternatives(definitions[schema["$ref"].rpartition("/")[2]], definitions, depth + 1)
    for word in ("anyOf", "oneOf", "allOf"):
        for inner in schema.get(word, ()):
            yield from _alternatives(inner, definitions, depth + 1)
    if isinstance(schema.get("items"), dict):
        yield from _alternatives(schema["items"], definitions, depth + 1)
    if {"properties", "enum", "const", "type", "additionalProperties"} & set(schema):
        yield schema


def _detail(schema: Schema, definitions: Schema, is_required: bool) -> str:
    text = str(schema.get("description", "")).partition("\n")[0]
    if not text:
        kinds = dict.fromkeys(str(one["type"]) for one in _alternatives(schema, definitions) if "type" in one)
        text = " or ".join(kind for kind in kinds if kind != "null")
    return f"required, {text}".rstrip(", ") if is_required else text
