"""Cuts event_rules that trigger each other without end. Pure.

Guarantee: the transition of an alarm that another transition caused has `depth` in its payload: the
number of transitions that led to it, itself included. A transition at `MAX_DEPTH` changes no alarm
any more; the engine returns `Suppressed` with the reason instead. The depth is part of the payload,
so live workers, rule tests and backtests cut at the same place, also if a sustain lies between two
transitions.

Why a depth and not the names of the rules: an event_rule may react to both the opening and the
resolution of another alarm, so that the same rules follow each other in a harmless cascade.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MAX_DEPTH = 16


def depth_of(facts: Mapping[str, Any]) -> int:
    """The depth of an event. Only what Tocsin derives has one; an operator's action begins again."""
    if facts.get("origin") != "derived":
        return 0
    depth = (facts.get("payload") or {}).get("depth")
    if isinstance(depth, int | float):
        return int(depth)
    return 1 if str(facts.get("type") or "").startswith("alarm-") else 0


def reason_of(rule: str, depth: int) -> str:
    return (
        f"suppressed: {depth} transitions of alarms led to this event, at most {MAX_DEPTH} may follow each other; "
        f"event_rule '{rule}' and others trigger each other"
    )
