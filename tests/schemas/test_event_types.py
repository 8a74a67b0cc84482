"""Only Tocsin writes events of its own types."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import get_args

import pytest

from rules.documents.load import load_text
from schemas.values.event_types import SCHEDULE_FIRED, check_free, check_schedule_type, is_reserved
from schemas.wire.alarm_events import Transition, event_type, is_transition
from schemas.wire.ingest_event import read_ingest_event
from tests.paths import ROOT
from timers.schedule_spec import ScheduleSpec, checked
from tocsin.core.errors import InvalidInput, TocsinError

RESERVED = [
    *("alarm-opened", "alarm-resolved", "alarm-x", "schedule-missed", "rules-applied", "notification-failed"),
    *("silence-ended", "maintenance-x", "action-failed", "pipeline-behind", "system-x", "cdc-stopped"),
    *("series-forgotten", "log-pruned", "log-gap-recorded", "stream-rebuilt"),
]


def written_types() -> Iterator[str]:
    """The types of all events that the product creates, where the code has them as a text."""
    for package in ("clock", "timers", "cdc", "rules", "schemas", "tocsin"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "NewEvent":
                    given = [*node.args[2:3], *[word.value for word in node.keywords if word.arg == "type"]]
                    yield from (
                        value.value
                        for value in given
                        if isinstance(value, ast.Constant) and isinstance(value.value, str)
                    )


def test_every_type_that_tocsin_writes_is_reserved() -> None:
    types = {*written_types(), *map(event_type, get_args(Transition)), "schedule-missed", SCHEDULE_FIRED}
    assert {"rules-applied", "log-pruned", "stream-rebuilt"} <= types
    assert sorted(type for type in types if not is_reserved(type)) == []


@pytest.mark.parametrize("type", RESERVED)
def test_a_reserved_type_is_refused_with_the_remedy(type: str) -> None:
    with pytest.raises(InvalidInput, match=f"'{type}' is reserved for events of tocsin itself"):
        check_free(type)


@pytest.mark.parametrize(
    "type", ["alarms", "order-shipped", "alarmed", "log-rotated", "link-down", "my-alarm-opened"]
)
def test_other_types_are_free(type: str) -> None:
    assert check_free(type) == type


def test_a_schedule_may_only_have_the_type_that_it_has_by_default() -> None:
    assert check_schedule_type("schedule-fired") == "schedule-fired"
    with pytest.raises(InvalidInput):
        check_schedule_type("schedule-missed")
    with pytest.raises(InvalidInput):
        checked(ScheduleSpec("s", {}, type="alarm-opened"))
    with pytest.raises(InvalidInput, match="the owner 'tocsin:silences' is reserved"):
        checked(ScheduleSpec("s", {}, owner="tocsin:silences"))


@pytest.mark.parametrize(
    "text",
    [
        "schedule: {name: s, every: 1h, type: alarm-opened}",
        "action: {name: esc, steps: [{emit: {type: alarm-resolved}}, {wait: {for: 5m}}]}",
        "action: {name: esc, emit: {type: rules-applied}}",
    ],
)
def test_a_document_that_would_emit_a_reserved_type_is_refused(text: str) -> None:
    with pytest.raises(TocsinError, match="is reserved for events of tocsin itself"):
        load_text(text)


def test_an_event_of_a_producer_with_a_reserved_type_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'alarm-resolved' is reserved"):
        read_ingest_event(b'{"id": "1", "type": "alarm-resolved"}')


@pytest.mark.parametrize(
    ("origin", "action", "expected"),
    [
        ("derived", "", True),
        ("caused", "", True),
        ("caused", "esc", False),
        ("external", "", False),
        ("scheduled", "", False),
    ],
)
def test_a_transition_is_of_a_rule_or_of_an_operator(origin: str, action: str, expected: bool) -> None:
    assert is_transition({"type": "alarm-resolved", "origin": origin, "action": action}) is expected
    assert not is_transition({"type": "link-down", "origin": origin, "action": action})
