"""Reads the record log from its tables, in the order of seq.

Guarantee: `read` returns records `after + 1, after + 2, ...` without a hole. A row that Python
cannot represent (an instant after the year 9999) becomes a tombstone, so that later records can be
published. For missing records whose loss was accepted, `read_gap` returns tombstones. Any other
hole means that committed rows were removed: the publisher stops at it, because publishing past it
would hide the loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import psycopg
import structlog
from psycopg.rows import TupleRow

from schemas.wire.calculated import CalculatedRow
from schemas.wire.event import EventRow
from schemas.wire.step import StepRow
from schemas.wire.tombstone import GapRow, Kind, TombstoneRow
from tocsin.core.db import Connection, fetch_all, fetch_one, fetch_value, statement

_log = structlog.get_logger()
Record = EventRow | StepRow | CalculatedRow | TombstoneRow | GapRow


class Gap(NamedTuple):
    """A missing range of seqs that is recorded in `log_gap`. Both ends belong to it."""

    from_seq: int
    until_seq: int
    reason: str
    who: str
    at: datetime


class LogReader:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    async def head(self) -> int:
        """The seq of the newest record."""
        return int(await fetch_value(self.connection, "cdc/read_head"))

    async def horizon(self) -> int:
        """The first seq that the tables still have."""
        return int(await fetch_value(self.connection, "cdc/read_horizon"))

    async def id_at(self, seq: int) -> UUID | None:
        identity = await self._identity(seq)
        return identity[1] if identity else None

    async def read(self, after: int, limit: int) -> list[Record]:
        """The next records, up to `limit` or a hole."""
        return _gapless(await self.read_range(after, limit), after)

    async def read_range(self, after: int, limit: int) -> list[Record]:
        """The records of the next `limit` seqs, without those that are missing."""
        try:
            return await self._read(after, limit)
        except psycopg.DataError as error:
            if limit == 1:
                return await self._read_unreadable(after + 1, error)
        # One row of the range cannot be read: halve the range until that row is alone.
        half = limit // 2
        return [*await self.read_range(after, half), *await self.read_range(after + half, limit - half)]

    async def read_gap(self, after: int, limit: int) -> list[Record]:
        """Tombstones for the recorded gap that contains `after + 1`; none if there is no such gap."""
        row = await fetch_one(self.connection, "cdc/read_gap", {"seq": after + 1})
        if row is None:
            return []
        from_seq, until_seq, reason, at = row
        last = min(until_seq, after + limit)
        return [GapRow(seq, from_seq, until_seq, reason, at) for seq in range(after + 1, last + 1)]

    async def gaps(self) -> list[Gap]:
        rows = await fetch_all(self.connection, "cdc/list_gaps")
        return [Gap(*row) for row in rows]

    async def erased_owners(self) -> dict[str, int]:
        """The owners whose records lost their contents, each with the seq before which they did."""
        return dict(await fetch_all(self.connection, "cdc/list_erasures"))

    async def first_hole(self, after: int) -> tuple[int, int] | None:
        """The first and last seq of the first hole after `after`."""
        row = await fetch_one(self.connection, "cdc/read_first_hole", {"after": after})
        return (int(row[0]), int(row[1])) if row else None

    async def lag_s(self, last: int) -> float:
        """The time since the commit of the oldest record after `last`."""
        return float(await fetch_value(self.connection, "cdc/read_lag", {"seq": last}))

    async def keep_plans(self) -> None:
        """Use one generic plan per statement. Only for a session that does nothing but read the log."""
        await self.connection.execute(statement("cdc/keep_plans"))

    async def listen(self) -> None:
        await self.connection.execute(statement("cdc/listen"))

    async def wait_for_commit(self, timeout_s: float) -> None:
        """Wait until a record is appended, at most `timeout_s`: a notification may be lost."""
        async for _ in self.connection.notifies(timeout=timeout_s, stop_after=1):
            pass

    async def _read(self, after: int, limit: int) -> list[Record]:
        bounds = {"after": after, "until": after + limit}
        rows = await fetch_all(self.connection, "cdc/read_records", bounds)
        return [_record(row) for row in rows]

    async def _read_unreadable(self, seq: int, error: psycopg.DataError) -> list[Record]:
        identity = await self._identity(seq)
        if identity is None:
            return []
        kind, id = identity
        reason = f"it cannot be read: {error}"
        _log.error("record cannot be published", seq=seq, id=str(id), reason=reason)
        return [TombstoneRow(seq, id, kind, None, reason)]

    async def _identity(self, seq: int) -> tuple[Kind, UUID] | None:
        row = await fetch_one(self.connection, "cdc/read_identity", {"seq": seq})
        return (row[0], row[1]) if row else None


def is_erased(record: Record, erased_owners: Mapping[str, int]) -> bool:
    """Whether the content of a record was erased, by `LogReader.erased_owners`."""
    owner = "" if isinstance(record, TombstoneRow | GapRow) else record.owner
    return record.seq < erased_owners.get(owner, 0)


def _record(row: TupleRow) -> Record:
    """A row of cdc/read_records as a record of its table.

    The columns are those of an event, and then those that only the other tables have. A step has
    its name in the column of the action and its state in the column of the type. A calculated
    datapoint has its kind there.
    """
    table = row[0]
    event = EventRow(*row[1:18])
    if table == "event":
        return event
    action_id, step, attempt, priority, key = row[18:]
    if table == "action-step":
        return StepRow(
            seq=event.seq,
            id=event.id,
            action_id=action_id,
            name=event.action,
            owner=event.owner,
            step=step,
            attempt=attempt,
            state=event.type,
            recorded_at=event.recorded_at,
            correlation_id=event.correlation_id,
            source_event_id=event.source_event_id,
            result=event.payload,
            priority=priority,
        )
    return CalculatedRow(
        seq=event.seq,
        id=event.id,
        owner=event.owner,
        key=key,
        ts=event.ts,
        recorded_at=event.recorded_at,
        kind=event.type,
        payload=event.payload,
        correlation_id=event.correlation_id,
    )


def _gapless(records: list[Record], after: int) -> list[Record]:
    """The records up to the first hole."""
    for position, record in enumerate(records, start=after + 1):
        if record.seq != position:
            return records[: position - after - 1]
    return records
