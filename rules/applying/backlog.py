"""Silences that are decided and that nobody has come to yet, settled before an apply stops the lanes.

Guarantee: an apply never has more than `MOST` owners to settle in its own transaction, however far the clock or the
stream is behind. What is beyond that is settled first, under the rules that hold, a page at a time: each page is a
transaction of its own that stops one partition, does what a worker does when a datapoint of the owner arrives, and
commits. Verdicts depend on arrivals alone, so it makes no difference who comes to them, or when; an apply that fails
or is killed after some pages has changed no rule, and left less to do for the clock.

Overtaken by the clock, a page is looked at again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from clock.record_log import append_records
from rules.alarms.series_alarms import Due, judge
from rules.applying.decisions import Decided
from rules.current import newest_rules
from rules.lanes.lane import Overtaken
from tocsin.core.db import Connection, retrying, statement

MOST = 1000
"""Owners whose silences an apply settles in its own transaction: a fraction of a second."""
_AT_ONCE = 250
_ROUNDS = 1000
Progress = Callable[[int, int], None]
"""Told how many owners are settled, and how many there were."""
Owners = dict[int, list[str]]


class Behind(Exception):
    """There is more to settle than an apply should do while the lanes are stopped."""


async def due_owners(connection: Connection) -> Owners:
    """By partition."""
    rows = await (await connection.execute(statement("rules.applying/list_due_owners"))).fetchall()
    found: defaultdict[int, list[str]] = defaultdict(list)
    for partition, owner in rows:
        found[partition].append(owner)
    return dict(found)


async def settle_backlog(
    connection: Connection, decided: Decided, newest: int, tell: Progress | None = None
) -> None:
    """Until so little is left that an apply may stop the lanes. `newest`: the apply before it."""
    total = 0
    for _ in range(_ROUNDS):
        due = await due_owners(connection)
        left = sum(map(len, due.values()))
        if left <= MOST:
            return
        total = max(total, left)
        done = total - left
        for partition, owners in sorted(due.items()):
            for begin in range(0, len(owners), _AT_ONCE):
                page = owners[begin : begin + _AT_ONCE]
                await _settle(connection, partition, page, decided, newest)
                done += len(page)
                if tell is not None:
                    tell(min(done, total), total)
    raise Behind


async def _settle(
    connection: Connection, partition: int, owners: Sequence[str], decided: Decided, newest: int
) -> None:
    async def once() -> None:
        async with connection.transaction():
            given = {"lane": "data", "partition": partition}
            locked = await connection.execute(statement("rules.applying/lock_partition"), given)
            row = await locked.fetchone()
            assert row is not None, "a partition is never removed"
            if await newest_rules(connection) != newest:
                raise Overtaken("another apply was quicker")
            inputs = [Due(owner, row[0]) for owner in owners]
            work = await judge(connection, partition, inputs, decided.before, decided.members)
            await work.timers(connection)
            await work.entities(connection)
            await append_records(connection, work.records())

    try:
        await retrying(once)
    except Overtaken:
        if await newest_rules(connection) != newest:
            raise
        # The clock came to one of them: the next round finds what is left.
