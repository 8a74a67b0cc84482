"""Compares a recording with its replay under the rules of the time: they must be equal (I5).

Each mismatch holds what was recorded, what the replay gives, and a possible cause.

Pure: no I/O.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from rules.health.systems import HealthChange
from rules.replay.backtest.recording.model import AlarmTransition, CalculatedChange, InitialAlarm
from schemas.wire.calculated import HEALTH_KEY
from tocsin.core.instant import instant_text

_LARGE = 2**63
_BEFORE = "was open before the start of the replay, and the recording does not contain its inputs"


class Mismatch(NamedTuple):
    owner: str
    at: datetime
    what: str
    """The rule of the alarm, or the key of the series."""
    recorded: str
    replayed: str
    cause: str


def compare_transitions(
    recorded: Sequence[AlarmTransition],
    replayed: Sequence[AlarmTransition],
    initial_alarms: Sequence[InitialAlarm] = (),
) -> list[Mismatch]:
    """Compare the transitions of one owner."""
    then = {_transition_key(transition): transition for transition in recorded}
    now = {_transition_key(transition): transition for transition in replayed}
    initial_rules = {initial.alarm.rule for initial in initial_alarms}
    mismatches = []
    for key in sorted({*then, *now}, key=str):
        was, is_ = then.get(key), now.get(key)
        transition = was or is_
        assert transition is not None
        if was is not None and is_ is not None and _compared_fields(was) == _compared_fields(is_):
            continue
        cause = _cause(was, is_, recorded, replayed)
        if transition.rule in initial_rules:
            cause += f"; an alarm of the rule {_BEFORE}"
        mismatches.append(
            Mismatch(
                transition.owner,
                transition.at,
                transition.rule,
                _transition_text(was),
                _transition_text(is_),
                cause,
            )
        )
    return mismatches


def compare_staleness(
    recorded: Sequence[CalculatedChange], replayed: Sequence[CalculatedChange]
) -> list[Mismatch]:
    then = {_change_key(change): change for change in recorded}
    now = {_change_key(change): change for change in replayed}
    mismatches = []
    for key in sorted({*then, *now}):
        was, is_ = then.get(key), now.get(key)
        if was is not None and is_ is not None and _plain(was.value) == _plain(is_.value):
            continue
        change = was or is_
        assert change is not None
        if was is not None and is_ is not None:
            cause = f"the last value was {was.value!r}, replayed it is {is_.value!r}"
        elif is_ is None:
            cause = "the recorded arrivals and the tolerance of the time give no such change at this instant"
        else:
            cause = "the recorded arrivals and the tolerance of the time give it, and it was not recorded"
        mismatches.append(
            Mismatch(change.owner, change.at, change.key, _change_text(was), _change_text(is_), cause)
        )
    return mismatches


def compare_health(
    recorded: Sequence[CalculatedChange],
    replayed: Sequence[HealthChange],
    has_initial_alarm: Callable[[str], bool] = lambda system: False,
) -> list[Mismatch]:
    """Compare the health of all systems.

    An instant may have two changes: one before an apply and one after it. `has_initial_alarm` tells
    whether a member of the system had an alarm that was open at the start of the replay.
    """
    then, now = (
        _numbered((change.owner, change.at, change.value) for change in recorded),
        _numbered((change.system, change.at, change.payload) for change in replayed),
    )
    mismatches = []
    for key in sorted({*then, *now}):
        was, is_ = then.get(key), now.get(key)
        if was == is_:
            continue
        if was is None or is_ is None:
            cause = (
                "the replayed members give no such health at this instant"
                if is_ is None
                else "the replayed members give it, and it was not recorded"
            )
        else:
            cause = f"the same instant with another {', '.join(name for name in is_ if was.get(name) != is_[name])}"
        if has_initial_alarm(key[0]):
            cause += f"; an alarm of a member {_BEFORE}"
        mismatches.append(Mismatch(key[0], key[1], HEALTH_KEY, _health_text(was), _health_text(is_), cause))
    return mismatches


def in_window(
    transitions: Iterable[AlarmTransition], since: datetime, until: dict[str, datetime]
) -> list[AlarmTransition]:
    """The transitions in the window, up to the horizon of their lane."""
    return [transition for transition in transitions if since <= transition.at <= until[transition.lane]]


def _cause(
    was: AlarmTransition | None,
    is_: AlarmTransition | None,
    then: Sequence[AlarmTransition],
    now: Sequence[AlarmTransition],
) -> str:
    if was is not None and is_ is not None:
        if was.at != is_.at:
            return "the same alarm at another instant"
        names = {*was.payload, *is_.payload}
        differ = [name for name in names if _plain(was.payload.get(name)) != _plain(is_.payload.get(name))]
        return f"the same transition with another {', '.join(sorted(differ)) or 'severity'}"
    missing, others, side = (was, now, "replay") if was is not None else (is_, then, "recording")
    assert missing is not None
    nearest = min(
        (other for other in others if (other.rule, other.kind) == (missing.rule, missing.kind)),
        key=lambda other: abs(other.at - missing.at),
        default=None,
    )
    if nearest is None:
        return f"the {side} has no such transition of the rule for this owner"
    return f"the nearest one in the {side} is at {instant_text(nearest.at)}"


def _transition_key(transition: AlarmTransition) -> tuple[object, ...]:
    number = transition.payload.get("change", 0) if transition.kind == "changed" else 0
    return transition.alarm_id, transition.kind, number


def _compared_fields(transition: AlarmTransition) -> object:
    return transition.rule, transition.at, transition.severity, _plain(transition.payload)


def _plain(value: Any) -> Any:
    """The value as the database returns it: JSON, with a large integer as a float."""
    if isinstance(value, dict):
        return {key: _plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    return float(value) if type(value) is int and abs(value) >= _LARGE else value


def _change_key(change: CalculatedChange) -> tuple[str, datetime, str]:
    return change.key, change.at, change.kind


def _transition_text(transition: AlarmTransition | None) -> str:
    if transition is None:
        return "nothing"
    message = transition.payload.get("message", json.dumps(transition.payload))
    return f"{transition.kind} {instant_text(transition.at)}: {message}"


def _numbered(changes: Iterable[tuple[str, datetime, Any]]) -> dict[tuple[str, datetime, int], Any]:
    counts: Counter[tuple[str, datetime]] = Counter()
    numbered = {}
    for system, at, payload in changes:
        numbered[system, at, counts[system, at]] = payload
        counts[system, at] += 1
    return numbered


def _health_text(payload: Any) -> str:
    if payload is None:
        return "nothing"
    members = ", ".join(
        f"{member['key'] or member['type']} of {member['owner']} {member['condition']}"
        for member in payload["members"]
    )
    return " ".join(filter(None, (payload["health"], payload["reason"], members and f"({members})")))


def _change_text(change: CalculatedChange | None) -> str:
    return "nothing" if change is None else f"{change.kind} {instant_text(change.at)}"
