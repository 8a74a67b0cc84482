"""Health of systems over time: observations of members in, changes of health out.

Guarantee: the health of a system at an instant is the roll-up of the conditions of its members
after everything that happened up to and at that instant. So it depends on arrivals alone: neither
on the batches in which observations came, nor on which partition was read first. Of several changes
within one microsecond only the last is visible.

A shell passes the observations of one instant (`observe`) and then asks for the changes
(`conclude`). Live workers do so when an instant is decided, rule tests when it is over, a backtest
when it is replayed.

Pure: no I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

from rules.documents.members import MemberRow, is_found, unseen_member
from rules.health.observations import MemberAlarm, Observation
from rules.health.rollup import (
    Health,
    MemberCondition,
    Reason,
    SeenSeries,
    SeverityThresholds,
    member_condition,
    roll_up,
)
from schemas.values.severities import severities

HealthState = tuple[Health, Reason | None]
FindMembers = Callable[[str, str], Iterable[MemberRow]]
"""`Members.of_series`: the members that a series (owner, key) counts as."""
MAX_SHOWN_MEMBERS = 10
WORST_FIRST: Sequence[MemberCondition] = ("outage", "stale", "degraded", "no-data", "uncovered")


class HealthChange(NamedTuple):
    system: str
    at: datetime
    health: Health
    reason: Reason | None
    was: Health | None
    """The health before; None if the system is new."""
    members: Sequence[dict[str, Any]] = ()
    """The worst members that are not ok, the worst first."""

    @property
    def payload(self) -> dict[str, Any]:
        return {"health": self.health, "reason": self.reason, "was": self.was, "members": list(self.members)}


class MemberStates:
    """The state of series and alarms after the observations so far."""

    def __init__(self) -> None:
        self.series: dict[str, dict[str, datetime | None]] = {}
        """By owner and key, the series that have sent data, with the instant since which they are
        stale."""
        self.alarms: dict[str, dict[tuple[str, str], MemberAlarm]] = {}
        """By owner, and by rule and instance, the open alarms."""

    def observe(self, observation: Observation) -> Iterable[str]:
        """Follow an observation, and return the keys of the series that it concerns."""
        owner, at, kind, subject, instance, alarm = observation
        if kind != "alarm":
            self.series.setdefault(owner, {})[subject] = at if kind == "stale" else None
            return (subject,)
        alarms = self.alarms.setdefault(owner, {})
        before = alarms.pop((subject, instance), None)
        if alarm is not None:
            alarms[subject, instance] = alarm
        return (before.keys if before else frozenset()) | (alarm.keys if alarm else frozenset())

    def keep_owners(self, owners: AbstractSet[str]) -> None:
        """Forget all other owners."""
        for by_owner in (self.series, self.alarms):
            for owner in by_owner.keys() - owners:
                del by_owner[owner]

    def condition(self, row: MemberRow, thresholds: SeverityThresholds) -> MemberCondition:
        series = self.series.get(row.owner, {})
        seen = SeenSeries(None if row.holds else series[row.key]) if row.key in series else None
        open_alarms = self.alarms.get(row.owner, {}).values()
        alarms = (alarm for alarm in open_alarms if row.key and row.key in alarm.keys)
        return member_condition(seen, alarms, row.covered, thresholds)


@dataclass(slots=True)
class SystemState:
    name: str
    state: HealthState | None = None
    """The health concluded last; None if none was concluded yet."""
    counts: Counter[tuple[MemberCondition, bool]] = field(default_factory=Counter)
    """The number of members by (condition, required)."""
    not_ok: dict[MemberRow, MemberCondition] = field(default_factory=dict)


class Systems:
    """Systems with their members.

    It may hold only the members of some owners. `add_counts` and `add_worst` then give the numbers
    and the worst of the others, about whose owners no observation may follow.
    """

    def __init__(self, states: MemberStates, find_members: FindMembers) -> None:
        self.states = states
        self.thresholds = SeverityThresholds.for_levels(len(severities()))
        self.systems: dict[str, SystemState] = {}
        self.members: dict[MemberRow, MemberCondition] = {}
        self._find_members = find_members
        self._by_series: dict[tuple[str, str], list[MemberRow]] = {}
        self._changed: set[str] = set()

    def add_system(self, name: str, state: HealthState | None = None) -> None:
        self.systems[name] = SystemState(name, state)
        if state is None:
            self._changed.add(name)

    def state(self, name: str) -> HealthState | None:
        """The health concluded last."""
        system = self.systems.get(name)
        return None if system is None else system.state

    def add_counts(self, name: str, condition: MemberCondition, required: bool, members: int) -> None:
        self.systems[name].counts[condition, required] += members

    def add_worst(self, row: MemberRow, condition: MemberCondition) -> None:
        """Add a member that `add_counts` has counted, so that a change can show it."""
        self.systems[row.system].not_ok[row] = condition

    def add_member(self, row: MemberRow, condition: MemberCondition | None = None) -> None:
        """Add a member. Without a `condition`, the states of its owner decide it."""
        if row not in self.members:
            self._by_series.setdefault((row.owner, row.key), []).append(row)
            self._set(row, condition or self.states.condition(row, self.thresholds))

    def observe(self, observations: Iterable[Observation]) -> None:
        """Follow the observations of one instant."""
        for observation in observations:
            owner, _, kind, subject, *_ = observation
            is_first = kind != "alarm" and subject not in self.states.series.get(owner, {})
            keys = self.states.observe(observation)
            if is_first:
                self._add_series(owner, subject)
            for key in keys:
                for row in self._by_series.get((owner, key), ()):
                    self._set(row, self.states.condition(row, self.thresholds))

    def conclude(self, at: datetime) -> list[HealthChange]:
        """The changes of health since the last call."""
        changes = []
        for name in sorted(self._changed):
            system = self.systems[name]
            state = roll_up(counted for counted, members in system.counts.items() if members)
            if state != system.state:
                was = None if system.state is None else system.state[0]
                changes.append(HealthChange(name, at, *state, was, _worst_members(system.not_ok)))
                system.state = state
        self._changed.clear()
        return changes

    def _add_series(self, owner: str, key: str) -> None:
        """Replace the row of a member without data by the series that sent the first datapoint."""
        for row in self._find_members(owner, key):
            if is_found(row):
                self._remove(unseen_member(row))
                self.add_member(row)

    def _set(self, row: MemberRow, condition: MemberCondition) -> None:
        before = self.members.get(row)
        if condition == before:
            return
        system = self.systems[row.system]
        if before is not None:
            system.counts[before, row.required] -= 1
            system.not_ok.pop(row, None)
        system.counts[condition, row.required] += 1
        if condition != "ok":
            system.not_ok[row] = condition
        self.members[row] = condition
        self._changed.add(row.system)

    def _remove(self, row: MemberRow) -> None:
        before = self.members.pop(row, None)
        if before is not None:
            system = self.systems[row.system]
            system.counts[before, row.required] -= 1
            system.not_ok.pop(row, None)


def observe_in_order(
    systems: Systems, observations: Iterable[Observation], not_before: datetime | None
) -> list[HealthChange]:
    """Follow observations in the order of their instants, and return the changes.

    No change gets an earlier instant than `not_before`.
    """
    changes = []
    for at, of_instant in groupby(observations, key=lambda observation: observation.at):
        systems.observe(of_instant)
        changes += systems.conclude(max(at, not_before or at))
    return changes


def removal_changes(before: Systems, names: AbstractSet[str], at: datetime) -> list[HealthChange]:
    """The final health change of each system that is not in `names` any more."""
    return [
        HealthChange(name, at, "unknown", "uncovered", system.state[0] if system.state else None)
        for name, system in sorted(before.systems.items())
        if name not in names
    ]


def _worst_members(not_ok: dict[MemberRow, MemberCondition]) -> list[dict[str, Any]]:
    def rank(item: tuple[MemberRow, MemberCondition]) -> tuple[int, bool, str, str, str]:
        row, condition = item
        return WORST_FIRST.index(condition), not row.required, row.owner, row.key, row.type

    return [
        {
            "owner": row.owner,
            "key": row.key,
            "type": row.type,
            "required": row.required,
            "condition": condition,
        }
        for row, condition in sorted(not_ok.items(), key=rank)[:MAX_SHOWN_MEMBERS]
    ]
