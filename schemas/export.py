"""Writes the JSON Schemas of everything that crosses a process boundary.

Guarantee: `schemas/json/<name>.schema.json` equals `SCHEMAS[name]()`; a test fails if a file is out
of date. To export another schema, add an entry to `SCHEMAS` and run `python -m schemas.export`,
which also writes the reference pages of the kinds.

Why files: editors complete and check rule files with them (`# yaml-language-server: $schema=...`),
and consumers in other languages generate their types from them, without running Tocsin.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from pydantic import BaseModel

from schemas.documents import DOCUMENT_KINDS
from schemas.documents.rule_test import RuleTestDocument
from schemas.reference import write_pages
from schemas.wire.calculated import CalculatedDatapoint
from schemas.wire.datapoint import DatapointMessage
from schemas.wire.dead_letter import DeadLetter
from schemas.wire.event import Event
from schemas.wire.ingest_event import IngestEvent
from schemas.wire.report import Report
from schemas.wire.step import ActionStep
from schemas.wire.tombstone import Tombstone

DIRECTORY = Path(__file__).parent / "json"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def _model_schema(model: type[BaseModel]) -> Callable[[], dict[str, object]]:
    return lambda: {"$schema": _DIALECT, **model.model_json_schema(mode="validation")}


def _file_schema(title: str, kinds: Mapping[str, type[BaseModel]]) -> dict[str, object]:
    """The schema of one document: an object with one kind as its only key, or nothing between two
    `---`.

    It is not a choice between the schemas of the kinds: an editor could then only report that none
    matches.
    """
    definitions: dict[str, object] = {}
    for model in kinds.values():
        schema = model.model_json_schema(mode="validation")
        definitions.update(schema.pop("$defs", {}))
        definitions[model.__name__] = schema
    properties: dict[str, object] = {
        kind: {"$ref": f"#/$defs/{model.__name__}"} for kind, model in kinds.items()
    }
    if kinds is DOCUMENT_KINDS:
        properties["defaults"] = _defaults_schema()
    return {
        "$schema": _DIALECT,
        "title": title,
        "description": "One document; separate several with a line `---`.",
        "type": ["object", "null"],
        "properties": properties,
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
        "$defs": definitions,
    }


def _defaults_schema() -> dict[str, object]:
    """By kind, any of its keys except `name`."""
    by_kind: dict[str, object] = {}
    for kind, model in DOCUMENT_KINDS.items():
        keys = [field.alias or name for name, field in model.model_fields.items() if name != "name"]
        by_kind[kind] = {
            "type": "object",
            "properties": {key: {"$ref": f"#/$defs/{model.__name__}/properties/{key}"} for key in keys},
            "additionalProperties": False,
        }
    return {
        "type": "object",
        "description": "Keys for the documents that follow in this file, by their kinds.",
        "properties": by_kind,
        "additionalProperties": False,
    }


SCHEMAS: dict[str, Callable[[], dict[str, object]]] = {
    **{kind: _model_schema(model) for kind, model in DOCUMENT_KINDS.items()},
    "rules": partial(_file_schema, "Tocsin rule file", DOCUMENT_KINDS),
    "tests": partial(_file_schema, "Tocsin file of rule tests", {"test": RuleTestDocument}),
    "event": _model_schema(Event),
    "action-step": _model_schema(ActionStep),
    "report": _model_schema(Report),
    "calculated-datapoint": _model_schema(CalculatedDatapoint),
    "tombstone": _model_schema(Tombstone),
    "datapoint": _model_schema(DatapointMessage),
    "ingest-event": _model_schema(IngestEvent),
    "dead-letter": _model_schema(DeadLetter),
}


def text_of(name: str) -> str:
    return json.dumps(SCHEMAS[name](), indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def write_all(directory: Path = DIRECTORY) -> list[Path]:
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name in SCHEMAS:
        path = directory / f"{name}.schema.json"
        path.write_text(text_of(name), encoding="utf-8")
        written.append(path)
    return written


if __name__ == "__main__":
    write_all()
    write_pages()
