"""The JSON Schemas of everything that crosses a process boundary, as files.

Guarantee: `schemas/json/<name>.schema.json` is what `SCHEMAS[name]()` returns; a test refuses a stale
file. To export one more schema, add an entry to `SCHEMAS` and run `python -m schemas.export`, which writes the
reference pages of the kinds as well.

Why files: editors complete and check rules files from them (`# yaml-language-server: $schema=...`), and
consumers in other languages generate their types from them, without running Tocsin.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from pydantic import BaseModel

from schemas.documents import KINDS
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


def _of_model(model: type[BaseModel]) -> Callable[[], dict[str, object]]:
    return lambda: {"$schema": _DIALECT, **model.model_json_schema(mode="validation")}


def _file(title: str, kinds: Mapping[str, type[BaseModel]]) -> dict[str, object]:
    """One document of a file: an object with one kind as its only key, or nothing between two `---`.

    Not a choice of one schema per kind: an editor could then only say that none of them fits.
    """
    definitions: dict[str, object] = {}
    for model in kinds.values():
        schema = model.model_json_schema(mode="validation")
        definitions.update(schema.pop("$defs", {}))
        definitions[model.__name__] = schema
    return {
        "$schema": _DIALECT,
        "title": title,
        "description": "One document; separate several with a line `---`.",
        "type": ["object", "null"],
        "properties": {kind: {"$ref": f"#/$defs/{model.__name__}"} for kind, model in kinds.items()},
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
        "$defs": definitions,
    }


SCHEMAS: dict[str, Callable[[], dict[str, object]]] = {
    **{kind: _of_model(model) for kind, model in KINDS.items()},
    "rules": partial(_file, "Tocsin rules file", KINDS),
    "tests": partial(_file, "Tocsin file of rule tests", {"test": RuleTestDocument}),
    "event": _of_model(Event),
    "action-step": _of_model(ActionStep),
    "report": _of_model(Report),
    "calculated-datapoint": _of_model(CalculatedDatapoint),
    "tombstone": _of_model(Tombstone),
    "datapoint": _of_model(DatapointMessage),
    "ingest-event": _of_model(IngestEvent),
    "dead-letter": _of_model(DeadLetter),
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
