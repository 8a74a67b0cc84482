"""Processes overdue staleness checks before an apply blocks the lanes.

Guarantee: an apply never has more than `MAX_OVERDUE` checks to handle in its own transaction,
however far the clock or the stream is behind. The checks beyond that are handled first, with the
rules that hold, one chunk at a time. Each chunk is a transaction of its own that blocks one
partition, does what a worker does when a datapoint of the owner arrives, and commits. Staleness
depends on arrivals alone, so it makes no difference which process handles it, or when. An apply
that fails or is killed after some chunks has changed no rule, and the clock has less to do.

A chunk is evaluated while the session is idle inside its transaction, which Postgres ends after a
while. So its size is limited by the number of checks, not of owners. The checks of one owner are
never divided.

If the clock handles a check of a chunk first, the chunk is read again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rules.alarms.over_series import OwnerWatermark, plan_batch
from rules.apply.impact import Impact
from rules.documents.rule_book import newest_rules
from tocsin.core.db import Connection, fetch_all, fetch_one, retrying, statement
from tocsin.core.errors import Conflict
from tocsin.core.record_log import append_records

MAX_OVERDUE = 1000
"""The checks that an apply handles in its own transaction: a fraction of a second."""
_CHUNK = 250
_ROUNDS = 1000
Progress = Callable[[int, int], None]
"""Called with the number of checks that are done, and their total."""


class OverdueOwner(NamedTuple):
    """An owner with overdue checks: staleness of its series, or sustains of a member."""

    owner: str
    checks: int


Backlog = dict[int, list[OverdueOwner]]
"""The owners with overdue checks of each partition."""


class BacklogTooLarge(Exception):
    """More checks are overdue than an apply should handle while the lanes are blocked."""


async def read_backlog(connection: Connection) -> Backlog:
    backlog: defaultdict[int, list[OverdueOwner]] = defaultdict(list)
    for partition, owner, checks in await fetch_all(connection, "rules.apply/list_overdue_owners"):
        backlog[partition].append(OverdueOwner(owner, checks))
    return dict(backlog)


def count_overdue(backlog: Backlog) -> int:
    return sum(overdue.checks for owners in backlog.values() for overdue in owners)


def chunks(owners: Sequence[OverdueOwner]) -> Iterator[list[OverdueOwner]]:
    """Owners with at most `_CHUNK` checks together, or a single owner."""
    chunk: list[OverdueOwner] = []
    checks = 0
    for overdue in owners:
        if chunk and checks + overdue.checks > _CHUNK:
            yield chunk
            chunk, checks = [], 0
        chunk.append(overdue)
        checks += overdue.checks
    if chunk:
        yield chunk


async def process_backlog(
    connection: Connection, impact: Impact, newest: int, progress: Progress | None = None
) -> None:
    """Handle checks until an apply may block the lanes for the rest.

    `newest` is the apply before it.
    """
    total = 0
    for _ in range(_ROUNDS):
        backlog = await read_backlog(connection)
        left = count_overdue(backlog)
        if left <= MAX_OVERDUE:
            return
        total = max(total, left)
        done = total - left
        for partition, owners in sorted(backlog.items()):
            for chunk in chunks(owners):
                await _process_chunk(connection, partition, chunk, impact, newest)
                done += sum(overdue.checks for overdue in chunk)
                if progress is not None:
                    progress(min(done, total), total)
    raise BacklogTooLarge


async def _process_chunk(
    connection: Connection, partition: int, chunk: Sequence[OverdueOwner], impact: Impact, newest: int
) -> None:
    async def once() -> None:
        async with connection.transaction():
            if sum(overdue.checks for overdue in chunk) > _CHUNK:
                await connection.execute(statement("rules.apply/raise_idle_timeout"))
            parameters = {"lane": "data", "partition": partition}
            row = await fetch_one(connection, "rules.apply/lock_partition", parameters)
            assert row is not None, "a partition is never removed"
            if await newest_rules(connection) != newest:
                raise Conflict("another apply was faster")
            inputs = [OwnerWatermark(overdue.owner, row[0]) for overdue in chunk]
            batch = await plan_batch(connection, partition, inputs, impact.before, impact.members)
            await batch.write_timers(connection)
            await batch.write_entities(connection)
            await append_records(connection, batch.records_to_append())

    try:
        await retrying(once)
    except Conflict:
        if await newest_rules(connection) != newest:
            raise
        # The clock handled one of the checks: the next round reads what is left.
