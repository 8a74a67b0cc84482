"""Decides what an apply does to the states of rules and their alarms. No other module decides it.

Guarantee:

- A heartbeat that changes continues with its new times (`rules/apply/heartbeats.py`).
- A state stays as it is if the conditions and the timing of its rule stay the same.
- If they change, an open alarm stays open until the new rule clears it. Everything else is
  evaluated again from the next input on.
- If the rule was removed or disabled, has another `per`, or no longer covers any series of the alarm, an open alarm is
  resolved with the reason and a pending alarm is dropped. No alarm is left without a rule that can
  resolve it.

Deadlines before the watermark of the partition are handled first, at their nominal time. So the
result does not depend on how late the clock was, and a replay that calls `change_state` at the same
place of the stream (`rules/apply/cutover.py`) gets the same alarms.

An apply changes the states that it finds (`rules/apply/alarms.py`). The record lane evaluates each
record with the rules of its seq, which may be older than the apply. So the worker that drains this
lane changes the states again when it reads the `rules-applied` event
(`AlarmBatch.apply_rule_changes`).

Pure: no I/O.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from rules.engine import CompiledRules, Effects, Rule, RuleState, adopt, advance, end
from tocsin.core.instant import MICROSECOND


class StateChange(NamedTuple):
    """Change of the states of one rule: they continue under `rule`, or they end."""

    rule: Rule | None
    reason: str = "rule-changed"
    why: str = "the rule was changed"


def state_changes(before: CompiledRules, after: CompiledRules) -> dict[str, StateChange]:
    """The changes by the name of the rule. A rule whose states stay as they are has none."""
    changes: dict[str, StateChange] = {}
    for name, rule in before.rules.items():
        successor = after.rules.get(name)
        if successor is None and name in after.disabled:
            changes[name] = StateChange(None, "rule-disabled", "the rule was disabled")
        elif successor is None:
            changes[name] = StateChange(None, "rule-removed", "the rule was removed")
        elif _lane(rule) != _lane(successor) or rule.document.per != successor.document.per:
            changes[name] = StateChange(None)
        elif rule.fingerprint != successor.fingerprint and not successor.is_heartbeat:
            changes[name] = StateChange(successor)
    return changes


def rules_to_reevaluate(before: CompiledRules, after: CompiledRules) -> frozenset[str]:
    """The rules over series that are new, or whose conditions or timing changed."""
    return frozenset(
        name
        for name, rule in after.rules.items()
        if _lane(rule) == "data"
        and ((earlier := before.rules.get(name)) is None or earlier.fingerprint != rule.fingerprint)
    )


def rules_over_alarms_to_begin(before: CompiledRules, after: CompiledRules) -> tuple[Rule, ...]:
    """The rules over alarms that are new, or whose conditions or timing changed.

    They read which alarms are open (`rules.engine.OpenAlarms`).
    """
    return tuple(
        rule
        for name, rule in after.rules.items()
        if rule.composite is not None
        and ((earlier := before.rules.get(name)) is None or earlier.fingerprint != rule.fingerprint)
    )


def change_state(
    state: RuleState, change: StateChange, watermark: datetime | None, at: datetime
) -> tuple[RuleState, Effects]:
    """Apply the change to one state, at the instant at which the rules change."""
    effects: Effects = ()
    if watermark is not None:
        state, effects = advance(state, watermark - MICROSECOND)
    # Arrivals are timed by another clock than applies, and no alarm may end before it opened.
    at = max(at, state.last_opened_at or at)
    if change.rule is None:
        state, more = end(state, at, change.reason, change.why)
    else:
        state, more = adopt(change.rule, state, at)
    return state, effects + more


def _lane(rule: Rule) -> str:
    return "record" if rule.document.datapoint is None else "data"
