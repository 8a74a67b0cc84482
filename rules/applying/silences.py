"""Silence, when the rules change.

Guarantee, in the apply's own transaction, which holds all partitions: first every silence up to `complete_until` is
realised and heard by the rules that held until now (`settle_silences`), so that what they concluded does not depend on
how late the clock or the stream was. In the end the rules that are new, or judge in another way than before, hear of
the series that are stale already, as of `complete_until` (`hear_silences`): `absent` over a dead series opens, its
`for` counted from the change.

A replay does the same at the same place of the stream (`rules/applying/switches.py`). Only the clock is beside us, and
it removes the timer first, as we do: then `Overtaken` is raised, and the apply begins again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from clock.record_log import Records
from rules.alarms.fates import judged_anew
from rules.alarms.judgement import Judgement, read_states
from rules.alarms.series_alarms import Due, judge
from rules.applying.alarms import Complete
from rules.applying.decisions import Decided
from rules.engine import Rule, Value, WentStale
from rules.lanes.phases import Writes
from tocsin.core.db import Connection, statement

_OWNERS_AT_ONCE = 1000
_SERIES_AT_ONCE = 5000


class Stale(NamedTuple):
    """A series as rules.applying/list_stale_series returns it."""

    partition: int
    owner: str
    key: str
    arrived_at: datetime
    value: Value
    ts: datetime
    labels: dict[str, str]

    def at(self, instant: datetime) -> WentStale:
        """What a rule hears that began to judge it then."""
        return WentStale(instant, *self[1:])


async def settle_silences(connection: Connection, complete: Complete, decided: Decided) -> Records:
    """Under the rules that held; what is left to append."""
    if decided.before is decided.after:
        return Records()
    rows = await (await connection.execute(statement("rules.applying/list_due_owners"))).fetchall()
    owners: defaultdict[int, list[str]] = defaultdict(list)
    for partition, owner in rows:
        owners[partition].append(owner)
    parts = []
    for partition, due in sorted(owners.items()):
        until = complete["data", partition]
        assert until is not None, "nothing was read, so nothing is due"
        for begin in range(0, len(due), _OWNERS_AT_ONCE):
            inputs = [Due(owner, until) for owner in due[begin : begin + _OWNERS_AT_ONCE]]
            judgement = await judge(connection, partition, inputs, decided.before)
            parts.append(await _written(connection, judgement))
    return Records.joined(parts)


async def hear_silences(connection: Connection, complete: Complete, decided: Decided) -> Records:
    """Under the rules that hold from now on; what is left to append."""
    anew = judged_anew(decided.before, decided.after)
    if not anew:
        return Records()
    rows = await (await connection.execute(statement("rules.applying/list_stale_series"))).fetchall()
    heard: defaultdict[int, list[tuple[Rule, WentStale]]] = defaultdict(list)
    for stale in (Stale(*row) for row in rows):
        until = complete["data", stale.partition]
        assert until is not None, "nothing was read, so nothing is stale"
        for rule in decided.after.for_key(stale.key):
            if rule.name in anew:
                heard[stale.partition].append((rule, stale.at(until)))
    parts = []
    for partition, pairs in sorted(heard.items()):
        for begin in range(0, len(pairs), _SERIES_AT_ONCE):
            page = pairs[begin : begin + _SERIES_AT_ONCE]
            parts.append(await _written(connection, await _heard(connection, partition, page)))
    return Records.joined(parts)


async def _heard(connection: Connection, partition: int, page: Sequence[tuple[Rule, WentStale]]) -> Judgement:
    subjects = ((rule.name, given.owner) for rule, given in page)
    judgement = Judgement("data", partition, await read_states(connection, subjects))
    for rule, given in page:
        judgement.hear(rule, given.owner, given)
    return judgement


async def _written(connection: Connection, work: Writes) -> Records:
    await work.timers(connection)
    await work.entities(connection)
    return work.records()
