"""Silence, when the rules change.

Guarantee, in the apply's own transaction, which holds all partitions: first every silence up to `watermark` is
realised and heard by the rules that held until now (`settle`), so that what they concluded does not depend on how late
the clock or the stream was; for members of systems every sustain is realised as well, because their health is about to
change its ground. In the end the rules that are new, or judge in another way than before, hear of the series that are
stale already, as of `watermark` (`hear_silences`): `absent` over a dead series opens, its `for` counted from the
change.

A replay does the same at the same place of the stream (`rules/apply/cutover.py`). Only the clock is beside us, and
it removes the timer first, as we do: then `Conflict` is raised, and the apply begins again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from rules.alarms.batch_writes import AlarmBatch, read_states
from rules.alarms.over_series import OwnerWatermark, plan_batch
from rules.alarms.rule_change import rules_to_reevaluate
from rules.apply.alarms import Complete
from rules.apply.backlog import MOST, Behind, count_silences, pages, read_backlog
from rules.apply.impact import Decided
from rules.engine import CompiledRules, Rule, Value, WentStale
from rules.health.observations import Fact
from rules.lanes.batch import Writes
from tocsin.core.db import Connection, statement
from tocsin.core.records import Records

# A page is judged while the session is idle inside of a transaction, which is ended when that takes long.
_AT_ONCE = 250


class Stale(NamedTuple):
    """A series as rules.apply/list_stale_series returns it."""

    partition: int
    owner: str
    key: str
    arrived_at: datetime
    value: Value
    ts: datetime
    labels: dict[str, str]

    def at(self, instant: datetime, told_at: datetime) -> WentStale:
        """What a rule hears that began to judge it then."""
        return WentStale(instant, *self[1:], told_at)


async def settle(connection: Connection, complete: Complete, decided: Decided) -> tuple[Records, list[Fact]]:
    """Under the rules that held; what is left to append, and facts about members. `Behind` if that is too much to do
    while the lanes are stopped: see `backlog`."""
    if decided.systems is None:
        return Records(), []
    overdue = await read_backlog(connection)
    if count_silences(overdue) > MOST:
        raise Behind
    parts: list[Records] = []
    facts: list[Fact] = []
    for partition, owners in sorted(overdue.items()):
        until = complete["data", partition]
        assert until is not None, "nothing was read, so nothing is due"
        for page in pages(owners):
            inputs = [OwnerWatermark(one.owner, until) for one in page]
            batch = await plan_batch(connection, partition, inputs, decided.before, decided.members)
            parts.append(await _written(connection, batch))
            facts += batch.facts
    return replace(Records.joined(parts), facts=None), facts


async def hear_silences(
    connection: Connection, complete: Complete, decided: Decided, at: datetime
) -> Records:
    """Under the rules that hold from now on; what is left to append."""
    anew = rules_to_reevaluate(decided.before, decided.after)
    parts = []
    async for page in _stale_series(connection, complete, decided.after, anew, at):
        for partition, pairs in sorted(page.items()):
            parts.append(await _written(connection, await _heard(connection, partition, pairs)))
    return Records.joined(parts)


async def _stale_series(
    connection: Connection, complete: Complete, rules: CompiledRules, anew: AbstractSet[str], at: datetime
) -> AsyncIterator[dict[int, list[tuple[Rule, WentStale]]]]:
    """By partition, page by page, with the rules that are to hear of them."""
    after = ("", "")
    query = statement("rules.apply/list_stale_series")
    while anew:
        given = {"owner": after[0], "key": after[1], "most": _AT_ONCE}
        rows = [Stale(*row) for row in await (await connection.execute(query, given)).fetchall()]
        page: defaultdict[int, list[tuple[Rule, WentStale]]] = defaultdict(list)
        for stale in rows:
            until = complete["data", stale.partition]
            assert until is not None, "nothing was read, so nothing is stale"
            heard = (rule for rule in rules.for_key(stale.key) if rule.name in anew)
            page[stale.partition] += [(rule, stale.at(until, at)) for rule in heard]
        yield page
        if len(rows) < _AT_ONCE:
            return
        after = rows[-1].owner, rows[-1].key


async def _heard(
    connection: Connection, partition: int, page: Sequence[tuple[Rule, WentStale]]
) -> AlarmBatch:
    subjects = ((rule.name, given.owner) for rule, given in page)
    batch = AlarmBatch("data", partition, await read_states(connection, subjects))
    for rule, given in page:
        batch.apply_input(rule, given.owner, given)
    return batch


async def _written(connection: Connection, work: Writes) -> Records:
    await work.timers(connection)
    await work.entities(connection)
    return work.records()
