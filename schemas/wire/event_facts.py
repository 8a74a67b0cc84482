"""The facts of an event: what conditions and templates can read. No other module
defines them. Pure: no I/O.

Guarantee: the names are `schemas.fields.EVENT_FIELDS`, in live workers, rule tests and backtests
alike. A fact without a value is empty and never missing: an event without a severity has 0.

`manual` is true for an event of `tocsin schedule run`. Its origin is `scheduled`, as that of a fire.
A fire begins its own correlation; a manual run is correlated with the `schedule-triggered` event of
the operator who ran it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_manual(origin: str, id: object, correlation_id: object) -> bool:
    """Whether an event comes from `tocsin schedule run`, and is no occurrence of its schedule."""
    return origin == "scheduled" and str(id) != str(correlation_id)


def event_facts(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a row of `event`, by the names of its columns; others are ignored."""
    return {
        "id": str(columns["id"]),
        "seq": columns["seq"],
        "ts": columns["ts"],
        "recorded_at": columns["recorded_at"],
        "origin": columns["origin"],
        "type": columns["type"],
        "schedule": columns["schedule"],
        "rule": columns["rule"],
        "action": columns["action"],
        "owner": columns["owner"],
        "severity": columns["severity"] or 0,
        "correlation_id": str(columns["correlation_id"]),
        "manual": is_manual(columns["origin"], columns["id"], columns["correlation_id"]),
        "payload": columns["payload"],
    }
