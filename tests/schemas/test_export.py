import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from schemas.documents import DOCUMENT_KINDS
from schemas.export import DIRECTORY, SCHEMAS, text_of, write_all


def accepts(schema: str, value: object) -> bool:
    return bool(jsonschema.Draft202012Validator(json.loads(text_of(schema))).is_valid(value))


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_the_exported_schema_is_current(name: str) -> None:
    exported = (DIRECTORY / f"{name}.schema.json").read_text(encoding="utf-8")
    assert exported == text_of(name), "run `python -m schemas.export`"


def test_no_exported_file_is_left_over() -> None:
    assert {path.name for path in DIRECTORY.iterdir()} == {f"{name}.schema.json" for name in SCHEMAS}


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_an_exported_schema_is_a_valid_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(text_of(name)))


def test_every_kind_of_document_is_exported() -> None:
    assert set(DOCUMENT_KINDS) | {"rules"} <= set(SCHEMAS)


def test_exporting_writes_every_schema(tmp_path: Path) -> None:
    assert {path.name for path in write_all(tmp_path / "json")} == {f"{name}.schema.json" for name in SCHEMAS}


@pytest.mark.parametrize(
    "document",
    [
        {"schedule": {"name": "a", "crn": "* * * * *"}},
        {"schedule": {"name": "a b", "cron": "* * * * *"}},
        {"schedule": {"name": "a", "every": "5s", "grace": "10"}},
        {"shedule": {"name": "a"}},
        {"schedule": {"name": "a", "every": "5s"}, "action": {"name": "b"}},
        [],
    ],
)
def test_the_schema_for_editors_refuses_a_wrong_document(document: Any) -> None:
    assert not accepts("rules", document)
