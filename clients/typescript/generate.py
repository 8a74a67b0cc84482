"""Writes `src/openapi.d.ts`, the types of the TypeScript client, from docs/openapi.json.

`python clients/typescript/generate.py` after a change of the API; a test compares both.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DOCUMENT = HERE.parents[1] / "docs" / "openapi.json"
TYPES = HERE / "src" / "openapi.d.ts"
_SIMPLE = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


def types_text(document: dict[str, Any]) -> str:
    parts = ["// Written by generate.py from docs/openapi.json. Do not edit.\n"]
    for name, schema in sorted(document["components"]["schemas"].items()):
        parts.append(f"export type {type_name(name)} = {type_of(schema)};\n")
    parts.append(
        "/** The body and the answer of each operation, by method and path. */\nexport interface Operations {"
    )
    for path, methods in sorted(document["paths"].items()):
        for method, operation in sorted(methods.items()):
            if isinstance(operation, dict) and "responses" in operation:
                parts.append(_operation(f"{method.upper()} {path}", operation))
    return "\n".join([*parts, "}\n"])


def type_of(schema: Any) -> str:
    if not isinstance(schema, dict) or not schema:
        return "unknown"
    if "$ref" in schema:
        return type_name(schema["$ref"].rpartition("/")[2])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " | ".join(dict.fromkeys(type_of(part) for part in schema[key]))
    if "allOf" in schema:
        return " & ".join(type_of(part) for part in schema["allOf"])
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(type_of({**schema, "type": each}) for each in kind)
    if kind == "array":
        return f"Array<{type_of(schema.get('items'))}>"
    if kind == "object" or "properties" in schema:
        return _object(schema)
    return _SIMPLE.get(str(kind), "unknown")


def type_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def _object(schema: dict[str, Any]) -> str:
    properties = schema.get("properties")
    if not properties:
        return f"Record<string, {type_of(schema.get('additionalProperties'))}>"
    required = set(schema.get("required", ()))
    members = (
        f"{_key(name)}{'' if name in required else '?'}: {type_of(value)}"
        for name, value in properties.items()
    )
    return "{ " + "; ".join(members) + " }"


def _key(name: str) -> str:
    return name if _NAME.fullmatch(name) else json.dumps(name)


def _operation(key: str, operation: dict[str, Any]) -> str:
    body = _content(operation.get("requestBody", {}))
    answers = [
        _content(answer) for status, answer in operation["responses"].items() if status.startswith("2")
    ]
    answer = " | ".join(dict.fromkeys(filter(None, answers))) or "undefined"
    return f"  {json.dumps(key)}: {{ body: {body or 'undefined'}; answer: {answer} }};"


def _content(holder: dict[str, Any]) -> str | None:
    for media_type, content in holder.get("content", {}).items():
        if media_type == "application/json":
            return type_of(content.get("schema"))
    return None


if __name__ == "__main__":
    TYPES.write_text(types_text(json.loads(DOCUMENT.read_text(encoding="utf-8"))), encoding="utf-8")
