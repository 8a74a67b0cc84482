"""An ingester in a process of its own that stops between append and acknowledgement, to be killed there.

`python -m tests.rules.lanes.external_events_process`, with the settings in the environment.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from nats.aio.client import Client
from nats.aio.msg import Msg

from rules.lanes.external_events import EventIngester
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings


class Stopping(EventIngester):
    async def ingest(self, connection: Connection, bus: Client, messages: Sequence[Msg]) -> list[Msg]:
        waiting = await super().ingest(connection, bus, messages)
        sys.stdout.write("appended\n")
        sys.stdout.flush()
        await asyncio.Event().wait()
        return waiting


async def main() -> None:
    async with running(Service("ingest", Stopping(Settings()).run)):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
