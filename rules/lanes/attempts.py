"""Finds messages that end the process that handles them.

Guarantee: a message over which `MOST_DEATHS` processes have died is set aside, and no outage of a
server counts. A handling that ends in any way, also with an error or because the service stops, ends
its attempt. So an attempt of another process remains only if that process died: killed, out of
memory, or crashed inside a library. If a process had several attempts, its death counts for none of
them.

Why only from the third delivery on, or after a lease that expired: an attempt costs two statements,
and almost every message is handled once.

On failure: a process that cannot reach Postgres leaves its attempt behind. It is the same process
that continues later, so nothing is counted. If another process takes the message first, one death is
counted wrongly; `MOST_DEATHS` allows for it.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import psycopg

from tocsin.core.db import Connection, fetch_value, statement

PROCESS = f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"
"""This process. Another one with the same number on the same host has another name."""
MOST_DEATHS = 3
SUSPECT_DELIVERIES = 3
"""The delivery of a message from which on its attempts are recorded."""


def reason_of(deaths: int) -> str:
    return f"{deaths} processes ended while they handled it, and nothing else that was tried again"


async def begin_attempt(connection: Connection, consumer: str, seq: int) -> int:
    """Record that this process handles a message. Returns how many processes have died over it."""
    message = {"consumer": consumer, "seq": seq, "process": PROCESS}
    return int(await fetch_value(connection, "rules.lanes/begin_attempt", message))


async def end_attempt(connection: Connection, consumer: str, seq: int) -> None:
    message = {"consumer": consumer, "seq": seq, "process": PROCESS}
    await connection.execute(statement("rules.lanes/end_attempt"), message)


@asynccontextmanager
async def attempt(connection: Connection, consumer: str, seq: int) -> AsyncIterator[int]:
    """Handle a message in the block; the value is the number of processes that died over it."""
    deaths = await begin_attempt(connection, consumer, seq)
    try:
        yield deaths
    finally:
        with suppress(psycopg.Error):  # an attempt of this process that remains counts for nothing
            await end_attempt(connection, consumer, seq)
