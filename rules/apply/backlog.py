"""Silences that are decided and that nobody has come to yet, settled before an apply stops the lanes.

Guarantee: an apply never has more than `MOST` silences to settle in its own transaction, however far the clock or the
stream is behind. What is beyond that is settled first, under the rules that hold, a page at a time: each page is a
transaction of its own that stops one partition, does what a worker does when a datapoint of the owner arrives, and
commits. Verdicts depend on arrivals alone, so it makes no difference who comes to them, or when; an apply that fails
or is killed after some pages has changed no rule, and left less to do for the clock.

A page is judged while the session is idle inside of its transaction, which is ended when that takes long: so it is of
so many silences, not of so many owners. Only those of one owner are never divided.

Conflict by the clock, a page is looked at again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rules.alarms.over_series import OwnerWatermark, plan_batch
from rules.apply.impact import Decided
from rules.documents.rule_book import newest_rules
from tocsin.core.db import Connection, fetch_all, retrying, statement
from tocsin.core.errors import Conflict
from tocsin.core.record_log import append_records

MOST = 1000
"""Silences that an apply settles in its own transaction: a fraction of a second."""
_AT_ONCE = 250
_ROUNDS = 1000
Progress = Callable[[int, int], None]
"""Told how many silences are settled, and how many there were."""


class Overdue(NamedTuple):
    """An owner, and how many silences of its series, or sustains of a member, are due."""

    owner: str
    silences: int


Backlog = dict[int, list[Overdue]]
"""By partition."""


class Behind(Exception):
    """There is more to settle than an apply should do while the lanes are stopped."""


async def read_backlog(connection: Connection) -> Backlog:
    rows = await fetch_all(connection, "rules.apply/list_due_owners")
    found: defaultdict[int, list[Overdue]] = defaultdict(list)
    for partition, *due in rows:
        found[partition].append(Overdue(*due))
    return dict(found)


def count_silences(overdue: Backlog) -> int:
    return sum(one.silences for owners in overdue.values() for one in owners)


def pages(owners: Sequence[Overdue]) -> Iterator[list[Overdue]]:
    """Of so many silences that they are judged quickly, or of one owner."""
    page: list[Overdue] = []
    silences = 0
    for one in owners:
        if page and silences + one.silences > _AT_ONCE:
            yield page
            page, silences = [], 0
        page.append(one)
        silences += one.silences
    if page:
        yield page


async def settle_backlog(
    connection: Connection, decided: Decided, newest: int, tell: Progress | None = None
) -> None:
    """Until so little is left that an apply may stop the lanes. `newest`: the apply before it."""
    total = 0
    for _ in range(_ROUNDS):
        overdue = await read_backlog(connection)
        left = count_silences(overdue)
        if left <= MOST:
            return
        total = max(total, left)
        done = total - left
        for partition, owners in sorted(overdue.items()):
            for page in pages(owners):
                await _settle(connection, partition, page, decided, newest)
                done += sum(one.silences for one in page)
                if tell is not None:
                    tell(min(done, total), total)
    raise Behind


async def _settle(
    connection: Connection, partition: int, page: Sequence[Overdue], decided: Decided, newest: int
) -> None:
    async def once() -> None:
        async with connection.transaction():
            if sum(one.silences for one in page) > _AT_ONCE:
                await connection.execute(statement("rules.apply/be_patient"))
            given = {"lane": "data", "partition": partition}
            locked = await connection.execute(statement("rules.apply/lock_partition"), given)
            row = await locked.fetchone()
            assert row is not None, "a partition is never removed"
            if await newest_rules(connection) != newest:
                raise Conflict("another apply was quicker")
            inputs = [OwnerWatermark(one.owner, row[0]) for one in page]
            work = await plan_batch(connection, partition, inputs, decided.before, decided.members)
            await work.timers(connection)
            await work.entities(connection)
            await append_records(connection, work.records())

    try:
        await retrying(once)
    except Conflict:
        if await newest_rules(connection) != newest:
            raise
        # The clock came to one of them: the next round finds what is left.
