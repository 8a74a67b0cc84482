"""Derives the health of systems from the observations of the replays of their members' owners.

Guarantee: observations of all owners are processed in the order of their instants, under the
documents of their period, as the live system decides health (`rules/health/decide.py`,
`rules/apply/systems.py`). The order in which the owners were replayed has no effect. Memory holds
the observations: a few for each alarm of a member and each time it became stale.

Pure: no I/O.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rules.documents.members import Members
from rules.engine import Arrival
from rules.health.observations import Observation
from rules.health.systems import HealthChange, MemberStates, Systems, observe_in_order, removal_changes
from rules.replay.backtest.timelines import HealthPeriod
from schemas.wire.calculated import HEALTH_KEY


class ReplayedObservation(NamedTuple):
    rules_seq: int
    """The seq of the apply whose rules were in force."""
    is_initial: bool
    """Whether it describes the state at the beginning of the period, and not a change in it."""
    observation: Observation


def derive_health(
    periods: Sequence[HealthPeriod], observations: Iterable[ReplayedObservation]
) -> list[HealthChange]:
    """All changes of the health of all systems, in order."""
    begins = [period.rules_seq for period in periods]
    by_period: list[list[ReplayedObservation]] = [[] for _ in periods]
    for replayed in observations:
        by_period[bisect_right(begins, replayed.rules_seq) - 1].append(replayed)
    states, before = MemberStates(), Systems(MemberStates(), lambda owner, key: ())
    changes: list[HealthChange] = []
    for period, of_period in zip(periods, by_period, strict=True):
        states.keep_owners(period.rules.members.owners)
        for replayed in of_period:
            if replayed.is_initial:
                states.observe(replayed.observation)
        systems = _begin_systems(period, states, before)
        changes += removal_changes(before, period.rules.members.systems, period.at) + systems.conclude(
            period.at
        )
        later = (replayed.observation for replayed in of_period if not replayed.is_initial)
        changes += observe_in_order(systems, sorted(later, key=lambda observation: observation.at), period.at)
        before = systems
    return changes


def _begin_systems(period: HealthPeriod, states: MemberStates, before: Systems) -> Systems:
    members, rules = period.rules.members, period.rules
    systems = Systems(states, lambda owner, key: members.of_series(owner, key, rules))
    for name in sorted(members.systems):
        systems.add_system(name, before.state(name))
    for row in members.rows(states.series, rules):
        systems.add_member(row)
    return systems


def replay_order(members: Members) -> list[list[str]]:
    """The systems in levels: each after those whose health is among its members.

    A cycle of systems is broken where it is met.
    """
    depths: dict[str, int] = {}

    def depth(name: str, above: frozenset[str]) -> int:
        if name not in depths:
            below = (members.owners_of(name) & members.systems) - above - {name}
            depths[name] = max((depth(member, above | {name}) + 1 for member in sorted(below)), default=0)
        return depths[name]

    for name in sorted(members.systems):
        depth(name, frozenset())
    deepest = max(depths.values(), default=-1)
    return [[name for name in sorted(depths) if depths[name] == level] for level in range(deepest + 1)]


def with_replayed_health(changes: Iterable[HealthChange], recorded: Sequence[Arrival]) -> list[Arrival]:
    """The arrivals of a system, with the recorded health replaced by the replayed one.

    A change arrives when the same health was recorded to have arrived, or else at its own instant.
    """
    recorded_health = {(row.ts, row.value): row for row in recorded if row.key == HEALTH_KEY}
    others = [row for row in recorded if row.key != HEALTH_KEY]
    replayed = [recorded_health.get((change.at, change.health)) or _arrival(change) for change in changes]
    return sorted([*others, *replayed], key=lambda row: (row.at, row.seq))


def _arrival(change: HealthChange) -> Arrival:
    labels = {} if change.reason is None else {"reason": str(change.reason)}
    return Arrival(change.at, 0, change.system, HEALTH_KEY, change.health, change.at, labels)
