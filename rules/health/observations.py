"""Observations: changes of the series and alarms of members, each at its instant.

Guarantee: an observation depends on arrivals alone. There are two sorts. A series is fresh (it sent
its first datapoint, or one after it was stale) or stale; the alarm of a rule is open, with the
series that keep it open, or it is not. Observations of one series, or of one rule, are in order,
and their instants never go back. Between others only the instant counts.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal, NamedTuple

from rules.engine import Alarm, Changed, Effects, Open, Resolve, RuleState, advance
from tocsin.core.instant import MICROSECOND
from tocsin.core.records import NewCalculated

ObservationKind = Literal["fresh", "stale", "alarm"]


class MemberAlarm(NamedTuple):
    """An open alarm, and the keys of the series that keep it open."""

    severity: int
    since: datetime
    keys: frozenset[str]


class Observation(NamedTuple):
    owner: str
    at: datetime
    kind: ObservationKind
    subject: str
    """The key of the series, or the name of the event_rule."""
    instance: str = ""
    """The instance of the alarm of the event_rule."""
    alarm: MemberAlarm | None = None
    """The alarm of an observation of kind `alarm`; None if it is not open."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON with the names of the columns of `member_observation`."""
        columns: dict[str, Any] = {
            "owner": self.owner,
            "at": self.at.isoformat(),
            "what": self.kind,
            "subject": self.subject,
            "instance": self.instance,
        }
        if self.alarm is not None:
            severity, since, keys = self.alarm
            columns |= {"severity": severity, "since": since.isoformat(), "keys": sorted(keys)}
        return columns


def member_alarm(state: RuleState) -> MemberAlarm | None:
    """The alarm of a state, if it is open."""
    if state.alarm is None or state.phase not in ("open", "clearing"):
        return None
    return _member_alarm(state.alarm)


def member_alarm_at(state: RuleState, watermark: datetime | None) -> MemberAlarm | None:
    """The alarm of a state, once the sustain that is due before the watermark has fired."""
    return member_alarm(state if watermark is None else advance(state, watermark - MICROSECOND)[0])


def alarm_observations(key: tuple[str, str, str], effects: Effects) -> Iterator[Observation]:
    """The observations of one change of a state.

    `key` is that of the state: rule, owner and instance.
    """
    rule, owner, instance = key
    for effect in effects:
        if isinstance(effect, Open | Changed):
            yield Observation(owner, effect.at, "alarm", rule, instance, _member_alarm(effect.alarm))
        elif isinstance(effect, Resolve):
            yield Observation(owner, effect.at, "alarm", rule, instance)


def _member_alarm(alarm: Alarm) -> MemberAlarm:
    return MemberAlarm(alarm.severity, alarm.since, frozenset(alarm.series))


def freshness_observation(calculated: NewCalculated) -> Observation:
    """The observation of a calculated datapoint about staleness."""
    kind: ObservationKind = "stale" if calculated.kind == "stale" else "fresh"
    return Observation(calculated.owner, calculated.ts, kind, calculated.key)
