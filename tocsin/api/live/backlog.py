"""Reads records from the tables of the log, as the stream has them.

Guarantee: the bodies equal the published ones, byte by byte (`cdc.messages`). What the tables lack is
left out: a recorded gap, or what retention has removed.

The sessions of the pool are shared with all requests, so at most `_CONCURRENT` connections read
their backlog at a time; the others wait.
"""

from __future__ import annotations

import asyncio

from psycopg_pool import AsyncConnectionPool

from cdc.log_reader import LogReader
from cdc.messages import message_of
from tocsin.api.live.record import LiveRecord, read_record
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

PAGE = 500
_CONCURRENT = 2
# The limit of NATS is not known here; a larger record is a tombstone in the stream.
_MAX_BODY = 1024 * 1024


class Backlog:
    def __init__(self, settings: Settings, pool: AsyncConnectionPool[Connection]) -> None:
        self._prefix = settings.subjects
        self._source = settings.source
        self._pool = pool
        self._turns = asyncio.Semaphore(_CONCURRENT)

    async def read(self, after: int, until: int) -> list[LiveRecord]:
        """The records after `after`, at most until `until` and at most a page of seqs."""
        limit = min(until - after, PAGE)
        async with self._turns, self._pool.connection() as connection:
            rows = await LogReader(connection).read_range(after, limit)
        messages = (message_of(row, self._prefix, self._source, _MAX_BODY) for row in rows)
        records = (read_record(message.seq, message.subject, message.body) for message in messages)
        return [record for record in records if record is not None]

    async def bounds(self) -> tuple[int, int]:
        """The first seq that the tables still have, and the last one."""
        async with self._turns, self._pool.connection() as connection:
            reader = LogReader(connection)
            return await reader.horizon(), await reader.head()
