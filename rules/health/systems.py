"""Systems through time: facts about their members in, changes of their health out. Pure; the one definition of health.

Guarantee: the health of a system at an instant is the roll-up of what its members are in after everything that happened
up to and at that instant. So it depends on arrivals alone: not on how facts came in batches, and not on which member's
partition was read first. Of what comes and goes within one microsecond only the end is seen.

A shell hands over the facts of one instant (`hear`), then asks what changed (`conclude`). Live workers do so when an
instant is decided, rule tests when it is over, a backtest when it is replayed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

from rules.documents.members import MemberRow, unmet
from rules.health.observations import Fact, Held
from rules.health.rollup import Condition, Health, Open, Reason, Seen, Weights, condition, roll_up
from schemas.values.severities import severities

HealthState = tuple[Health, Reason | None]
Join = Callable[[str, str], Iterable[MemberRow]]
"""As which members a series counts: `Members.of_series`."""
SHOWN = 10
WORST: Sequence[Condition] = ("outage", "stale", "degraded", "no-data", "uncovered")


class HealthChange(NamedTuple):
    system: str
    at: datetime
    health: Health
    reason: Reason | None
    was: Health | None
    """None: nothing was said of it before."""
    members: Sequence[dict[str, Any]] = ()
    """Some that are not ok, the worst first."""

    @property
    def payload(self) -> dict[str, Any]:
        return {"health": self.health, "reason": self.reason, "was": self.was, "members": list(self.members)}


class Known:
    """What the facts up to now amount to."""

    def __init__(self) -> None:
        self.series: dict[str, dict[str, datetime | None]] = {}
        """Of each owner the series that were seen, and since when they are stale."""
        self.alarms: dict[str, dict[str, Held]] = {}
        """Of each owner the open alarms, by their rule."""

    def take(self, fact: Fact) -> Iterable[str]:
        """The keys that it concerns."""
        if fact.what != "alarm":
            self.series.setdefault(fact.owner, {})[fact.subject] = fact.at if fact.what == "stale" else None
            return (fact.subject,)
        alarms = self.alarms.setdefault(fact.owner, {})
        before = alarms.pop(fact.subject, None)
        if fact.held is not None:
            alarms[fact.subject] = fact.held
        return (before.keys if before else frozenset()) | (fact.held.keys if fact.held else frozenset())

    def keep(self, owners: AbstractSet[str]) -> None:
        """And forget all others: nobody follows them any more."""
        for of_owner in (self.series, self.alarms):
            for owner in of_owner.keys() - owners:
                del of_owner[owner]

    def condition(self, row: MemberRow, weights: Weights) -> Condition:
        series = self.series.get(row.owner, {})
        seen = Seen(None if row.holds else series[row.key]) if row.key in series else None
        held = self.alarms.get(row.owner, {}).values()
        alarms = (Open(one.severity, one.since) for one in held if row.key and row.key in one.keys)
        return condition(seen, alarms, row.covered, weights)


@dataclass(slots=True)
class System:
    name: str
    state: HealthState | None = None
    """None: nothing was said yet."""
    counts: Counter[tuple[Condition, bool]] = field(default_factory=Counter)
    """Of (condition, required), over all members."""
    ill: dict[MemberRow, Condition] = field(default_factory=dict)


class Systems:
    """`known` may be of some owners only, and `place` of some members, if `count` says how the others are and `mention`
    names the worst of them: they must be of owners about which nothing is heard."""

    def __init__(self, known: Known, join: Join) -> None:
        self.known = known
        self.weights = Weights.among(len(severities()))
        self.systems: dict[str, System] = {}
        self.members: dict[MemberRow, Condition] = {}
        self._join = join
        self._by_series: dict[tuple[str, str], list[MemberRow]] = {}
        self._changed: set[str] = set()

    def begin(self, name: str, state: HealthState | None = None) -> None:
        self.systems[name] = System(name, state)
        if state is None:
            self._changed.add(name)

    def state(self, name: str) -> HealthState | None:
        """What was concluded about it last."""
        system = self.systems.get(name)
        return None if system is None else system.state

    def count(self, name: str, condition: Condition, required: bool, others: int) -> None:
        self.systems[name].counts[condition, required] += others

    def mention(self, row: MemberRow, condition: Condition) -> None:
        """One of those that are counted: it is to be shown if it is among the worst."""
        self.systems[row.system].ill[row] = condition

    def place(self, row: MemberRow, condition: Condition | None = None) -> None:
        """`condition`: what it is in, if what is known says nothing of its owner."""
        if row not in self.members:
            self._by_series.setdefault((row.owner, row.key), []).append(row)
            self._set(row, condition or self.known.condition(row, self.weights))

    def hear(self, facts: Iterable[Fact]) -> None:
        """All that happened at one instant, before it is concluded."""
        for fact in facts:
            is_new = fact.what != "alarm" and fact.subject not in self.known.series.get(fact.owner, {})
            keys = self.known.take(fact)
            if is_new:
                self._meet(fact.owner, fact.subject)
            for key in keys:
                for row in self._by_series.get((fact.owner, key), ()):
                    self._set(row, self.known.condition(row, self.weights))

    def conclude(self, at: datetime) -> list[HealthChange]:
        """What is not as it was when it was concluded before."""
        found = []
        for name in sorted(self._changed):
            system = self.systems[name]
            state = roll_up(one for one, members in system.counts.items() if members)
            if state != system.state:
                was = None if system.state is None else system.state[0]
                found.append(HealthChange(name, at, *state, was, _shown(system.ill)))
                system.state = state
        self._changed.clear()
        return found

    def _meet(self, owner: str, key: str) -> None:
        """A series was seen for the first time: it may be what a type stood for until now."""
        for row in self._join(owner, key):
            if row.type:
                self._drop(unmet(row))
                self.place(row)

    def _set(self, row: MemberRow, now: Condition) -> None:
        before = self.members.get(row)
        if now == before:
            return
        system = self.systems[row.system]
        if before is not None:
            system.counts[before, row.required] -= 1
            system.ill.pop(row, None)
        system.counts[now, row.required] += 1
        if now != "ok":
            system.ill[row] = now
        self.members[row] = now
        self._changed.add(row.system)

    def _drop(self, row: MemberRow) -> None:
        before = self.members.pop(row, None)
        if before is not None:
            system = self.systems[row.system]
            system.counts[before, row.required] -= 1
            system.ill.pop(row, None)


def take(systems: Systems, facts: Iterable[Fact], holds_from: datetime | None) -> list[HealthChange]:
    """Facts in the order of their instants, an instant at a time."""
    found = []
    for at, of_instant in groupby(facts, key=lambda fact: fact.at):
        systems.hear(of_instant)
        found += systems.conclude(max(at, holds_from or at))
    return found


def gone(before: Systems, names: AbstractSet[str], at: datetime) -> list[HealthChange]:
    """The last word about systems that no document names any more."""
    return [
        HealthChange(name, at, "unknown", "uncovered", system.state[0] if system.state else None)
        for name, system in sorted(before.systems.items())
        if name not in names
    ]


def _shown(ill: dict[MemberRow, Condition]) -> list[dict[str, Any]]:
    worst = sorted(
        ill.items(),
        key=lambda one: (WORST.index(one[1]), not one[0].required, one[0].owner, one[0].key, one[0].type),
    )
    return [
        {"owner": row.owner, "key": row.key, "type": row.type, "required": row.required, "condition": one}
        for row, one in worst[:SHOWN]
    ]
