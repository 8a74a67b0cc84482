"""The health of systems, derived again from what the replays of their members' owners noted. Pure.

Guarantee: facts of all owners are taken in the order of their instants, under the documents of their era, as the live
system decides them (`rules/health/decide.py`, `rules/apply/systems.py`); in whatever order the owners were
replayed, the health is the same. Kept are the facts: a few for each alarm and each silence of a member.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rules.documents.members import Members
from rules.engine import Arrival
from rules.health.observations import Fact
from rules.health.systems import HealthChange, Known, Systems, gone, take
from rules.replay.backtest.timelines import Era
from schemas.wire.calculated import HEALTH_KEY


class Noted(NamedTuple):
    """A fact, and the apply whose rules it is of. `begins`: it was so when they began to hold."""

    rules_seq: int
    begins: bool
    fact: Fact


def derive(eras: Sequence[Era], noted: Iterable[Noted]) -> list[HealthChange]:
    """Every change of the health of every system, in order."""
    begins = [era.rules_seq for era in eras]
    of_eras: list[list[Noted]] = [[] for _ in eras]
    for one in noted:
        of_eras[bisect_right(begins, one.rules_seq) - 1].append(one)
    known, before = Known(), Systems(Known(), lambda owner, key: ())
    found: list[HealthChange] = []
    for era, of_era in zip(eras, of_eras, strict=True):
        known.keep(era.rules.members.owners)
        for one in of_era:
            if one.begins:
                known.take(one.fact)
        systems = _begun(era, known, before)
        found += gone(before, era.rules.members.systems, era.at) + systems.conclude(era.at)
        facts = sorted((one.fact for one in of_era if not one.begins), key=lambda fact: fact.at)
        found += take(systems, facts, era.at)
        before = systems
    return found


def _begun(era: Era, known: Known, before: Systems) -> Systems:
    members, rules = era.rules.members, era.rules
    systems = Systems(known, lambda owner, key: members.of_series(owner, key, rules))
    for name in sorted(members.systems):
        systems.begin(name, before.state(name))
    for row in members.rows(known.series, rules):
        systems.place(row)
    return systems


def levels(members: Members) -> list[list[str]]:
    """The systems, so that each comes after those whose health it has among its members; one that is, in the end, a
    member of itself comes as if it were not."""
    depths: dict[str, int] = {}

    def depth(name: str, above: frozenset[str]) -> int:
        if name not in depths:
            below = (members.owners_of(name) & members.systems) - above - {name}
            depths[name] = max((depth(one, above | {name}) + 1 for one in sorted(below)), default=0)
        return depths[name]

    for name in sorted(members.systems):
        depth(name, frozenset())
    deepest = max(depths.values(), default=-1)
    return [[name for name in sorted(depths) if depths[name] == level] for level in range(deepest + 1)]


def arrivals(changes: Iterable[HealthChange], recorded: Sequence[Arrival]) -> list[Arrival]:
    """The datapoints of a system with the health that was derived: it arrives when the same health was recorded to
    have arrived, or else at its own instant."""
    then = {(one.ts, one.value): one for one in recorded if one.key == HEALTH_KEY}
    others = [one for one in recorded if one.key != HEALTH_KEY]
    now = [then.get((one.at, one.health)) or _arrival(one) for one in changes]
    return sorted([*others, *now], key=lambda one: (one.at, one.seq))


def _arrival(one: HealthChange) -> Arrival:
    labels = {} if one.reason is None else {"reason": str(one.reason)}
    return Arrival(one.at, 0, one.system, HEALTH_KEY, one.health, one.at, labels)
