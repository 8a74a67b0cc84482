"""A step's body is CloudEvents and fits the exported schema; so does a tombstone's."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from schemas.export import DIRECTORY
from schemas.wire.step import ActionStep, StepRow
from schemas.wire.tombstone import TombstoneRow
from tests.schemas.rows import AT, ID, OTHER, step_row

STEP_SCHEMA = json.loads((DIRECTORY / "action-step.schema.json").read_text(encoding="utf-8"))
TOMBSTONE_SCHEMA = json.loads((DIRECTORY / "tombstone.schema.json").read_text(encoding="utf-8"))


def body_of(row: StepRow) -> dict[str, Any]:
    body = json.loads(row.body("tocsin/ns"))
    jsonschema.validate(body, STEP_SCHEMA, format_checker=jsonschema.FormatChecker())
    return dict(body)


def test_the_body_says_which_step_of_which_action_is_in_which_state() -> None:
    row = step_row(owner="plant 7", source_event_id=OTHER, result='{"subject": "鐘"}', state="completed")
    assert body_of(row) == {
        "specversion": "1.0",
        "id": str(ID),
        "source": "tocsin/ns",
        "type": "action-step-completed",
        "time": "2026-03-02T08:00:00Z",
        "datacontenttype": "application/json",
        "seq": 8,
        "correlationid": str(ID),
        "action": "tell",
        "actionid": str(OTHER),
        "step": 0,
        "attempt": 1,
        "state": "completed",
        "owner": "plant 7",
        "sourceeventid": str(OTHER),
        "data": {"subject": "鐘"},
    }


def test_a_consumer_reads_what_the_row_holds() -> None:
    step = ActionStep.model_validate_json(step_row().body("s"))
    assert (step.actionid, step.step, step.attempt, step.state) == (OTHER, 0, 1, "due")
    assert (step.owner, step.sourceeventid) == ("", None)


def test_the_subject_names_the_action() -> None:
    assert step_row(name="tell me").subject("ns.v1") == "ns.v1.action.tell%20me"


@pytest.mark.parametrize("broken", ["actionid", "step", "attempt", "state", "data"])
def test_the_exported_schema_requires_what_is_promised(broken: str) -> None:
    body = body_of(step_row())
    del body[broken]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(body, STEP_SCHEMA)


@pytest.mark.parametrize("recorded_at", [AT, None])
def test_a_tombstone_has_the_id_and_the_seq_of_its_record_and_says_why(recorded_at: Any) -> None:
    row = TombstoneRow(9, ID, "event", recorded_at, "it is too large")
    body = json.loads(row.body("tocsin/ns"))
    jsonschema.validate(body, TOMBSTONE_SCHEMA, format_checker=jsonschema.FormatChecker())
    assert (body["id"], body["seq"], body["type"]) == (str(ID), 9, "record-unsendable")
    assert body["data"] == {"reason": "it is too large"}
    assert body.get("time") == ("2026-03-02T08:00:00Z" if recorded_at else None)
    assert row.subject("ns.v1") == "ns.v1.tombstone.event"
