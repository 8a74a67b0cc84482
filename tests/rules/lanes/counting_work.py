"""Work that counts its effects: one row per datapoint of a transaction, in a table without a key."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any

from rules.engine.inputs import Arrival
from rules.lanes.batch import Writes
from rules.lanes.data_lane import DataBatch
from tests.sql import all_rows
from tocsin.core.db import Connection

Hook = Callable[[str], Awaitable[None]]


async def make_effects(connection: Connection) -> None:
    await connection.execute(
        "create table public.effect (number bigserial, pid integer, partition integer, owner text, seq bigint,"
        " value integer)"
    )
    await connection.execute("grant select, insert on public.effect to tocsin_worker")
    await connection.execute("grant usage on sequence public.effect_number_seq to tocsin_worker")


async def effects(connection: Connection) -> list[dict[str, Any]]:
    return await all_rows(connection, "select * from public.effect order by number")


class Counting:
    """`hook` is called when a batch is planned, and when it is written but not committed."""

    def __init__(self, hook: Hook | None = None) -> None:
        self._hook = hook

    async def plan(self, connection: Connection, batch: DataBatch) -> Writes:
        if self._hook is not None:
            await self._hook("planned")
        return _Count(batch, self._hook)


class _Count(Writes):
    def __init__(self, batch: DataBatch, hook: Hook | None) -> None:
        self._batch = batch
        self._hook = hook

    async def write_entities(self, connection: Connection) -> None:
        arrivals = [input for input in self._batch.inputs if isinstance(input, Arrival)]
        await connection.execute(
            "insert into public.effect (pid, partition, owner, seq, value)"
            " select %s, %s, d.* from unnest(%s::text[], %s::bigint[], %s::integer[]) as d",
            (
                os.getpid(),
                self._batch.partition,
                [arrival.owner for arrival in arrivals],
                [arrival.seq for arrival in arrivals],
                [arrival.value for arrival in arrivals],
            ),
        )
        if self._hook is not None:
            await self._hook("written")
