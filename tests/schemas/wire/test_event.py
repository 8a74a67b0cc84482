"""An event's body is CloudEvents, fits the exported schema, and carries the payload as it was
stored."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import jsonschema
import pytest

from schemas.export import DIRECTORY
from schemas.fields import EVENT_FIELDS
from schemas.wire.event import Event, EventRow
from tests.schemas.rows import AT, ID, OTHER, event_row
from tocsin.core.instant import instant_text

SCHEMA = json.loads((DIRECTORY / "event.schema.json").read_text(encoding="utf-8"))
FULL = {
    "schedule": "beat",
    "rule": "r",
    "action": "tell",
    "owner": "plant 7",
    "fire_at": AT + timedelta(seconds=5),
    "alarm_id": OTHER,
    "severity": 3,
    "source_event_id": OTHER,
}


def body_of(row: EventRow) -> dict[str, Any]:
    body = json.loads(row.body("tocsin/ns"))
    jsonschema.validate(body, SCHEMA, format_checker=jsonschema.FormatChecker())
    return dict(body)


def test_the_body_has_the_attributes_of_cloudevents() -> None:
    assert body_of(event_row(payload='{"k": 1}')) == {
        "specversion": "1.0",
        "id": str(ID),
        "source": "tocsin/ns",
        "type": "schedule-fired",
        "time": "2026-03-02T08:00:00Z",
        "datacontenttype": "application/json",
        "seq": 7,
        "origin": "scheduled",
        "recordedat": "2026-03-02T08:00:00Z",
        "correlationid": str(ID),
        "schedule": "beat",
        "data": {"k": 1},
    }


def test_attributes_are_there_when_they_have_a_value() -> None:
    body = body_of(event_row(**FULL))
    assert body["rule"] == "r"
    assert body["action"] == "tell"
    assert body["owner"] == "plant 7"
    assert body["fireat"] == "2026-03-02T08:00:05Z"
    assert (body["alarmid"], body["sourceeventid"]) == (str(OTHER), str(OTHER))
    assert body["severity"] == 3


def test_a_severity_of_zero_is_a_value() -> None:
    assert body_of(event_row(severity=0))["severity"] == 0


def test_attribute_names_are_those_that_cloudevents_allows() -> None:
    names = set(body_of(event_row(**FULL))) - {"data"}
    assert all(name.isalnum() and name.islower() and len(name) <= 20 for name in names)


@pytest.mark.parametrize(
    "payload",
    [
        "{}",
        '{"a": null, "b": [1, 2.50, -0, true]}',
        '{"text": "鐘 \\"quoted\\" \\\\ é", "ключ": "\U0001f514"}',
        '{"big": 123456789012345678901234567890}',
        '{"n": 1.10}',
        json.dumps({"long": "x" * 200_000}),
    ],
)
def test_the_payload_is_embedded_as_it_was_stored(payload: str) -> None:
    row = event_row(payload=payload)
    assert row.body("s").endswith(b',"data":' + payload.encode() + b"}")
    assert body_of(row)["data"] == json.loads(payload)


@pytest.mark.parametrize("broken", ["id", "seq", "origin", "data", "specversion", "correlationid"])
def test_the_exported_schema_requires_what_is_promised(broken: str) -> None:
    body = body_of(event_row())
    del body[broken]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(body, SCHEMA)


def test_a_field_that_comes_later_is_accepted() -> None:
    body = {**body_of(event_row()), "added": 1}
    jsonschema.validate(body, SCHEMA)
    assert Event.model_validate(body).seq == 7


def test_what_a_rule_sees_is_what_the_row_holds() -> None:
    facts = Event.model_validate_json(event_row(payload='{"k": [1]}', **FULL).body("s")).facts()
    assert set(facts) == set(EVENT_FIELDS)
    assert (facts["id"], facts["seq"], facts["origin"]) == (str(ID), 7, "scheduled")
    assert (facts["type"], facts["schedule"], facts["rule"]) == ("schedule-fired", "beat", "r")
    assert (facts["action"], facts["owner"], facts["severity"]) == ("tell", "plant 7", 3)
    assert facts["ts"] == facts["recorded_at"] == AT
    assert facts["payload"] == {"k": [1]}
    assert facts["correlation_id"] == str(ID)


def test_an_event_without_severity_counts_as_zero_for_rules() -> None:
    assert Event.model_validate_json(event_row().body("s")).facts()["severity"] == 0


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"schedule": "beat", "rule": "r", "action": "a"}, "beat"),
        ({"schedule": "", "rule": "r", "action": "a"}, "r"),
        ({"schedule": "", "rule": "", "action": "a"}, "a"),
        ({"schedule": "", "rule": "", "action": ""}, "_"),
    ],
)
def test_the_subject_names_the_schedule_or_the_rule_or_the_action(given: dict[str, str], name: str) -> None:
    row = event_row(owner="a.b", **given)
    assert row.subject("ns.v1") == f"ns.v1.event.scheduled.schedule-fired.{name}.a%2Eb"


def test_instants_are_written_in_utc() -> None:
    there = datetime(2026, 3, 2, 9, 0, 0, 1500, tzinfo=timezone(timedelta(hours=1)))
    assert instant_text(there) == "2026-03-02T08:00:00.001500Z"
    assert instant_text(datetime(2026, 3, 2, tzinfo=UTC)) == "2026-03-02T00:00:00Z"


@pytest.mark.parametrize("changed", [{}, FULL, {**FULL, "schedule": "", "severity": 0}])
def test_the_body_is_the_compact_json_of_its_attributes(changed: dict[str, Any]) -> None:
    """The bytes equal those of the standard library, for any texts."""
    awkward = 'é "\\\n\t\x01 \u2028 😀'
    row = event_row(**{**changed, "type": awkward, **({"owner": awkward} if changed else {})})
    text = row.body(f"tocsin/{awkward}").decode()
    assert text == json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))
    assert json.loads(text)["type"] == awkward
