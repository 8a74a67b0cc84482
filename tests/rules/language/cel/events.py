"""Events and activations as the tests of expressions use them."""

from datetime import UTC, datetime
from typing import Any

from rules.language.cel import Condition, compile_event_condition, event_activation, event_environment

NOON = datetime(2026, 11, 3, 12, 0, tzinfo=UTC)


def event(**fields: Any) -> dict[str, Any]:
    return {
        "origin": "scheduled",
        "type": "schedule-fired",
        "schedule": "heartbeat",
        "id": "6f1c",
        "correlation_id": "6f1c",
        "seq": 7,
        "ts": NOON,
        "recorded_at": NOON,
        "payload": {},
    } | fields


def is_match(condition: str | Condition, **fields: Any) -> bool:
    if isinstance(condition, str):
        condition = compile_event_condition(condition, rule="test")
    return condition.matches(event_activation(event_environment(), event(**fields)))
