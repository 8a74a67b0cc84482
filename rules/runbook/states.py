"""States of runs and of their steps, and what ends a run before its last step.

The statements in `sql/` and the migrations list the same states. `schemas.documents.rule_test` and
`schemas.wire.step` list them as literals, because their models are exported.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.documents.action_rule import EndingTransition
from schemas.values.rule_ref import RuleRef
from schemas.wire.alarm_events import event_type, is_transition

ACTIVE = ("gathering", "queued", "running")
DEAD = ("failed", "timed_out")
ENDED = ("completed", *DEAD, "cancelled", "skipped")
RUN_STATES = (*ACTIVE, *ENDED)
ACTIVE_STEP = ("due", "waiting")
"""A step in one of these states is not finished; in any other state its attempt has ended."""

_ENDING_EVENTS: dict[str, tuple[EndingTransition, str]] = {
    event_type("resolved"): ("resolved", "the alarm resolved"),
    event_type("acknowledged"): ("acknowledged", "the alarm was acknowledged"),
}


def ending_reason(event: Mapping[str, Any]) -> str | None:
    """The reason if an event, by its facts, ends the runs that its alarm has started, else None."""
    return _ENDING_EVENTS[event["type"]][1] if _is_ending(event) else None


def ending_transition(event: Mapping[str, Any]) -> EndingTransition | None:
    """The transition of an event that ends runs, as `ends_with` of an action_rule names it."""
    return _ENDING_EVENTS[event["type"]][0] if _is_ending(event) else None


def _is_ending(event: Mapping[str, Any]) -> bool:
    return event["type"] in _ENDING_EVENTS and is_transition(event)


def ends_with_alarm(rule: str) -> bool:
    """Whether the runs of a rule end with their alarm. A notification does not: it is delivered
    even if the alarm changes after it."""
    return RuleRef.parse(rule).kind != "notify"
