"""Series and their watchdogs, stored as a worker stores them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from tests.clock.clock_setup import at
from tests.sql import all_rows
from tocsin.core.db import Connection

KEY = "dsp.temperature"
WITHIN = timedelta(seconds=10)


async def put_series(
    connection: Connection,
    arrived_at: datetime,
    *,
    owner: str = "plant-7",
    key: str = KEY,
    partition: int = 0,
) -> None:
    await connection.execute(
        "insert into tocsin.current_value (owner, key, partition, value, ts, arrived_at, stream_seq, first_arrived_at)"
        " values (%s, %s, %s, '71.2', %s, %s, 1, %s)"
        " on conflict (owner, key) do update set arrived_at = excluded.arrived_at",
        (owner, key, partition, at(-100), arrived_at, arrived_at),
    )


async def watch_series(
    connection: Connection, deadline: datetime, *, owner: str = "plant-7", key: str = KEY
) -> None:
    payload = {"owner": owner, "within_us": WITHIN // timedelta(microseconds=1)}
    await connection.execute(
        "select tocsin.arm('watchdog', tocsin.token(%s), %s, %s, %s)", (owner, key, deadline, Jsonb(payload))
    )


async def series_row(connection: Connection, key: str = KEY) -> dict[str, Any]:
    (row,) = await all_rows(connection, "select * from tocsin.current_value where key = %s", (key,))
    return row


async def calculated_datapoints(connection: Connection) -> list[dict[str, Any]]:
    return await all_rows(connection, "select * from tocsin.datapoint_calculated order by seq")
