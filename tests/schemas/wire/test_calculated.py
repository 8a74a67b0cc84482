"""A calculated datapoint's body is CloudEvents and fits the exported schema."""

from __future__ import annotations

import json

import jsonschema
import pytest

from schemas.export import DIRECTORY
from schemas.wire.calculated import CalculatedDatapoint, CalculatedRow
from tests.schemas.rows import AT, ID, OTHER

SCHEMA = json.loads((DIRECTORY / "calculated-datapoint.schema.json").read_text(encoding="utf-8"))
ROW = CalculatedRow(9, ID, "plant 7", "dsp.temp erature", AT, AT, "stale", '{"value": 7}', OTHER)


def test_the_body_has_the_series_and_the_kind() -> None:
    body = json.loads(ROW.body("tocsin/ns"))
    jsonschema.validate(body, SCHEMA, format_checker=jsonschema.FormatChecker())
    assert (body["type"], body["owner"], body["key"]) == ("datapoint-stale", "plant 7", "dsp.temp erature")
    assert body["data"] == {"value": 7}
    read = CalculatedDatapoint.model_validate_json(ROW.body("s"))
    assert (read.seq, read.kind, read.time, read.correlationid) == (9, "stale", AT, OTHER)


@pytest.mark.parametrize(
    ("kind", "subject"),
    [
        ("stale", "ns.v1.staleness.plant%207.dsp.temp%20erature"),
        ("fresh", "ns.v1.staleness.plant%207.dsp.temp%20erature"),
        ("health", "ns.v1.health.plant%207.dsp.temp%20erature"),
    ],
)
def test_the_dots_of_a_key_are_levels_of_the_subject(kind: str, subject: str) -> None:
    assert ROW._replace(kind=kind).subject("ns.v1") == subject
