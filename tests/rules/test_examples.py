"""The examples load, fit together and do what their comments promise."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest

from rules.documents.load import load_files, recurrence_of
from rules.documents.load.yaml_tree import read_documents
from rules.language.cel import RuleIndex, compile_event_condition
from rules.language.templates import fill, fill_text
from schemas.documents import ActionDocument, ActionRuleDocument, ScheduleDocument
from schemas.export import text_of
from tests.paths import ROOT

EXAMPLES = ROOT / "examples"
QUICKSTART = EXAMPLES / "quickstart.yaml"
START = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_an_example_loads_on_its_own_and_can_be_stored(path: Path) -> None:
    loaded = load_files([path])
    assert loaded.documents
    for document in loaded.documents:
        assert type(document.model).model_validate(document.data) == document.model


def test_all_examples_may_be_applied_together() -> None:
    assert load_files(sorted(EXAMPLES.glob("*.yaml"))).documents


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_the_json_schema_accepts_an_example(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=../schemas/json/rules.schema.json\n")
    validator = jsonschema.Draft202012Validator(json.loads(text_of("rules")))
    for node in read_documents(text):
        validator.validate(node.value)


def next_fires(name: str, count: int) -> list[datetime]:
    model = next(one.model for one in load_files([QUICKSTART]).of_kind("schedule") if one.name == name)
    assert isinstance(model, ScheduleDocument)
    recurrence = recurrence_of(model, anchor=START, hash_id=name)
    return [fire.at for fire in recurrence.occurrences(START, START + timedelta(days=9), count)]


def test_the_heartbeat_fires_within_five_seconds() -> None:
    assert next_fires("heartbeat", 2) == [START + timedelta(seconds=5), START + timedelta(seconds=10)]


def test_the_digest_is_due_at_eight_in_new_york_on_weekdays() -> None:
    assert [fire.isoformat() for fire in next_fires("daily-digest", 6)] == [
        f"2026-11-{day}T13:00:00+00:00" for day in (16, 17, 18, 19, 20, 23)
    ]


def test_each_fire_of_the_quickstart_starts_its_own_action() -> None:
    loaded = load_files([QUICKSTART])
    rules = {one.name: one.model for one in loaded.of_kind("action_rule")}
    index = RuleIndex(
        {
            name: compile_event_condition(rule.condition)
            for name, rule in rules.items()
            if isinstance(rule, ActionRuleDocument)
        }
    )
    fired = {"origin": "scheduled", "type": "schedule-fired", "ts": START, "payload": {}}
    assert index.matching(fired | {"schedule": "heartbeat"}) == ["show-heartbeat"]
    assert index.matching(fired | {"schedule": "daily-digest"}) == ["send-digest"]
    assert index.matching(fired | {"schedule": "daily-digest", "origin": "derived"}) == []


def test_the_actions_of_the_quickstart_name_the_schedule() -> None:
    loaded = load_files([QUICKSTART])
    actions = {one.name: one.model for one in loaded.of_kind("action")}
    heartbeat = next(one.data for one in loaded.documents if one.name == "heartbeat")
    event = {"schedule": "heartbeat", "ts": START, "payload": heartbeat["payload"]}
    log, digest = actions["log-heartbeat"], actions["request-digest"]
    assert isinstance(log, ActionDocument)
    assert isinstance(digest, ActionDocument)
    assert log.log is not None
    assert digest.publish is not None
    said = fill_text(log.log.message, event)
    assert said == "heartbeat fired for 2026-11-16T12:00:00Z: the clock is alive"
    assert fill(digest.publish.payload, event) == {"report": "open-alarms", "for": "2026-11-16T12:00:00Z"}
