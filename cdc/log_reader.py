"""The record log as one gapless sequence, read from its tables.

Guarantee: `read` returns records `after + 1, after + 2, ...` without a hole. A row that Python cannot hold
(an instant beyond the year 9999) comes as a tombstone, so that it does not stop what follows. A hole that
does not close means that somebody removed committed rows; `LogHole` is what the publisher raises then,
because publishing past it would hide that.
"""

from __future__ import annotations

from uuid import UUID

import psycopg
import structlog
from psycopg.rows import TupleRow

from schemas.calculated import CalculatedRow
from schemas.event import EventRow
from schemas.step import StepRow
from schemas.tombstone import TombstoneRow
from tocsin.core.db import Connection, statement
from tocsin.core.errors import TocsinError

_log = structlog.get_logger()
Record = EventRow | StepRow | CalculatedRow | TombstoneRow


class LogHole(TocsinError):
    """Committed records are missing from the table."""


class LogReader:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def head(self) -> int:
        row = await (await self._connection.execute(statement("cdc/read_head"))).fetchone()
        return int(row[0]) if row else 0

    async def horizon(self) -> int:
        """The first seq the tables still have."""
        row = await (await self._connection.execute(statement("cdc/read_horizon"))).fetchone()
        return int(row[0]) if row else 1

    async def id_at(self, seq: int) -> UUID | None:
        row = await (await self._connection.execute(statement("cdc/read_identity"), {"seq": seq})).fetchone()
        return row[1] if row else None

    async def read(self, after: int, limit: int) -> list[Record]:
        try:
            return await self._read(after, limit)
        except psycopg.DataError as error:
            if limit > 1:
                return await self.read(after, limit // 2)
            return await self._read_unreadable(after + 1, error)

    async def listen(self) -> None:
        await self._connection.execute(statement("cdc/listen"))

    async def wait_for_commit(self, timeout_s: float) -> None:
        """Until somebody appends, at most `timeout_s`: a notification may be lost on the way."""
        async for _ in self._connection.notifies(timeout=timeout_s, stop_after=1):
            pass

    async def _read(self, after: int, limit: int) -> list[Record]:
        bounds = {"after": after, "until": after + limit}
        # Plain statements: a pipeline that is cancelled leaves its session in an unknown state.
        events = await self._connection.execute(statement("cdc/read_events"), bounds)
        event_rows: list[TupleRow] = await events.fetchall()
        steps = await self._connection.execute(statement("cdc/read_steps"), bounds)
        step_rows: list[TupleRow] = await steps.fetchall()
        calculated = await self._connection.execute(statement("cdc/read_calculated"), bounds)
        calculated_rows: list[TupleRow] = await calculated.fetchall()
        found: list[Record] = [EventRow(*row) for row in event_rows]
        found += [StepRow(*row) for row in step_rows]
        found += [CalculatedRow(*row) for row in calculated_rows]
        found.sort(key=_seq)
        return _gapless(found, after)

    async def _read_unreadable(self, seq: int, error: psycopg.DataError) -> list[Record]:
        row = await (await self._connection.execute(statement("cdc/read_identity"), {"seq": seq})).fetchone()
        if row is None:
            return []
        reason = f"it cannot be read: {error}"
        _log.error("record cannot be sent", seq=seq, id=str(row[1]), reason=reason)
        return [TombstoneRow(seq, row[1], row[0], None, reason)]


def _seq(record: Record) -> int:
    return record.seq


def _gapless(records: list[Record], after: int) -> list[Record]:
    """The tables are read by statements of their own, so a commit between them shows in the later ones alone: what
    follows such a missing link is left for the next read. A hole that does not close is found by the
    caller."""
    for position, record in enumerate(records, start=after + 1):
        if record.seq != position:
            return records[: position - after - 1]
    return records
