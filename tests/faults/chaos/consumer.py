"""`python -m tests.faults.chaos.consumer`: a service that writes one row per record, through an inbox.

Its database is in the environment, because it belongs to the service and not to Tocsin.
"""

from __future__ import annotations

import asyncio
import os
import signal

from tests.faults.traps import die_with_the_parent
from tocsin.client import Delivery, Inbox, Records, consume_batches, inbox_sql
from tocsin.client.select import Record
from tocsin.core.db import Connection
from tocsin.core.logs import configure_logs
from tocsin.core.settings import Settings

DATABASE = "TOCSIN_TEST_SERVICE_DATABASE"
NAME = "effects"
# `n` is the order in which the effects were committed. Nothing makes an effect unique but the inbox.
CREATE_TABLES = (
    "create table effect (n bigint generated always as identity, seq bigint, id uuid);"
    "create index on effect (seq);" + inbox_sql()
)


async def handle(records: list[Record], connection: Connection) -> None:
    async with connection.cursor() as cursor:
        rows = [(record.seq, record.id) for record in records]
        await cursor.executemany("insert into effect (seq, id) values (%s, %s)", rows)


async def main() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    inbox = Inbox(os.environ[DATABASE])
    # In batches: on a crowded machine one transaction per record would be slower than the load.
    delivery = Delivery(batch=50)
    await consume_batches(
        Records(), handle, consumer=NAME, keep=inbox, start="beginning", delivery=delivery, stop=stop
    )


if __name__ == "__main__":
    die_with_the_parent()
    configure_logs(Settings())
    asyncio.run(main())
