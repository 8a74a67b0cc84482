"""A record log whose records are old enough for retention to remove."""

from __future__ import annotations

from datetime import timedelta

from tests.clock.clock_setup import T0
from tocsin.core.db import Connection
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent

DAY = timedelta(days=1)
NOW = T0 + 400 * DAY


async def fill(connection: Connection, count: int, rule: str = "", at: timedelta = timedelta(0)) -> None:
    """Append `count` old events, a second apart, each in its own commit."""
    for number in range(count):
        now = T0 + at + timedelta(seconds=number)
        await connection.execute("select set_config('tocsin.now', %s, false)", (now.isoformat(),))
        await append_events(connection, [NewEvent(now, "caused", "tested", {"number": number}, rule=rule)])
        await connection.execute("select tocsin.extend_log()")


async def mark_read_up_to(connection: Connection, seq: int) -> None:
    """Record that the publisher and the workers have read the log up to `seq`."""
    await connection.execute("update tocsin.cdc_report set last_seq = %s", (seq,))
    await connection.execute(
        "insert into tocsin.lane_partition (lane, partition, last_seq) values ('record', 0, %s)"
        " on conflict (lane, partition) do update set last_seq = excluded.last_seq",
        (seq,),
    )


async def set_now_to_end(connection: Connection) -> None:
    """Move the virtual time to the end, when all filled records are old."""
    await connection.execute("select set_config('tocsin.now', %s, false)", (NOW.isoformat(),))
