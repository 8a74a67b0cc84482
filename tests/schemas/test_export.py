import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

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


def objects_in(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [found for each in schema for found in objects_in(each)]
    if not isinstance(schema, dict):
        return []
    return [schema, *(found for each in schema.values() for found in objects_in(each))]


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_no_limit_belongs_to_another_type(name: str) -> None:
    limits = {
        "maxLength": "string",
        "minLength": "string",
        "pattern": "string",
        "maxItems": "array",
        "minItems": "array",
        "maxProperties": "object",
        "maximum": ("integer", "number"),
        "minimum": ("integer", "number"),
    }
    for schema in objects_in(json.loads(text_of(name))):
        for limit, types in limits.items():
            if limit in schema and isinstance(schema.get("type"), str) and "const" not in schema:
                assert schema["type"] in types, schema


def test_headers_are_limited_in_the_schema_as_in_the_parser() -> None:
    for count, accepted in ((50, True), (51, False)):
        headers = {f"X-{number}": "v" for number in range(count)}
        channel = {"name": "c", "webhook": {"url": "https://a.example", "headers": headers}}
        assert accepts("rules", {"channel": channel}) is accepted


@pytest.mark.parametrize("path", sorted(Path("examples/tests").glob("*.yaml")), ids=lambda path: path.name)
def test_the_schema_of_rule_tests_accepts_the_examples(path: Path) -> None:
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        for test in [document] if document else []:
            jsonschema.validate(json.loads(json.dumps(test, default=str)), json.loads(text_of("tests")))


@pytest.mark.parametrize("value", [95, 71.2, True, "0 70x10"])
def test_single_values_need_no_quotes_in_an_editor(value: object) -> None:
    given = [{"series": "a.b", "values": value, "every": "1m"}]
    expect = [{"opened": "hot", "says": value}]
    only = {"rule": "hot"}
    document = {
        "name": "t",
        "rules": ["r.yaml"],
        "until": "1h",
        "given": given,
        "expect": expect,
        "only": only,
    }
    assert accepts("tests", {"test": document})
