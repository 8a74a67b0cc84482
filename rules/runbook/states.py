"""States of runs and of their steps, and what ends a run before its last step.

The statements in `sql/` and the migrations list the same states. `schemas.documents.rule_test` and
`schemas.wire.step` list them as literals, because their models are exported.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.values.rule_ref import RuleRef
from schemas.wire.alarm_events import event_type, is_transition

ACTIVE = ("gathering", "queued", "running")
DEAD = ("failed", "timed_out")
ENDED = ("completed", *DEAD, "cancelled", "skipped")
RUN_STATES = (*ACTIVE, *ENDED)
ACTIVE_STEP = ("due", "waiting")
"""A step in one of these states is not finished; in any other state its attempt has ended."""

_ENDING_EVENTS = {
    event_type("resolved"): "the alarm resolved",
    event_type("acknowledged"): "the alarm was acknowledged",
}


def ending_reason(event: Mapping[str, Any]) -> str | None:
    """The reason if an event, by its facts, ends the runs that its alarm has started, else None."""
    return _ENDING_EVENTS.get(event["type"]) if is_transition(event) else None


def ends_with_alarm(rule: str) -> bool:
    """Whether the runs of a rule end with their alarm. A notification does not: it is delivered
    even if the alarm changes after it."""
    return RuleRef.parse(rule).kind != "notify"
