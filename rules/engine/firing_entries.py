"""Entries of `firing_series`: what fires, and what follows when it is evaluated again.

Pure: no I/O.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from rules.engine.effects import Effects
from rules.engine.rule import Rule
from rules.engine.state import FiringSeries, RuleState
from rules.engine.transitions import EvaluatedInput, transition

EVENTS_KEY = ""
"""The key of the entry in `firing_series` that stands for the events or alarms of an owner."""
NO_LABELS: dict[str, str] = {}


def continue_firing(
    rule: Rule,
    state: RuleState,
    firing: FiringSeries | None,
    is_firing: bool | None,
    clear_for: timedelta,
    evaluated: EvaluatedInput,
) -> tuple[RuleState, Effects]:
    """A series that fires was evaluated again.

    It stays as it is if the conditions are undecided.
    """
    if firing is None or is_firing is None or is_firing == (firing.clear_due_at is None):
        return state, ()
    if firing.is_resolved:
        # The alarm that an operator resolved is over: the next one may begin.
        others = {key: other for key, other in state.firing_series.items() if key != evaluated.key}
        return transition(rule, state, others, evaluated)
    if is_firing:
        firing_again = firing._replace(clear_due_at=None)
        if rule.levels:
            severity = rule.severity_of(evaluated.value)
            firing_again = firing_again._replace(value=evaluated.value, severity=severity)
        return transition(rule, state, {**state.firing_series, evaluated.key: firing_again}, evaluated)
    if not clear_for or state.phase == "pending" or firing.due_at > evaluated.at:
        others = {key: other for key, other in state.firing_series.items() if key != evaluated.key}
        return transition(rule, state, others, evaluated)
    cleared = firing._replace(clear_due_at=evaluated.at + clear_for)
    return transition(rule, state, {**state.firing_series, evaluated.key: cleared}, evaluated)


def firing_entry(state: RuleState, key: str, at: datetime) -> FiringSeries | None:
    """The entry of a series that fires.

    None once it was clear for long enough, even if others keep the alarm open.
    """
    firing = state.firing_series.get(key)
    if firing is None or (firing.clear_due_at is not None and firing.clear_due_at < at):
        return None
    return firing


def is_open_entry(state: RuleState, firing: FiringSeries | None) -> bool:
    """Whether `clear` decides.

    A series that only had no data has not met `fire`, so `fire` decides.
    """
    if firing is None or firing.cause != "fired":
        return False
    return firing.is_resolved or state.phase in ("open", "clearing")
