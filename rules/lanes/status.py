"""How the lanes and their workers stand, for a person to look at."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from typing import NamedTuple

import psycopg

from tocsin.core.db import Connection, fetch_all, open_session, statement
from tocsin.core.errors import TocsinError
from tocsin.core.settings import Settings

# Longer than the longest pause between two tries of a service.
_KNOWN_S = 15.0
_WITHIN_S = 2.0


class Standing(NamedTuple):
    lane: str
    partition: int
    holder: str | None
    """None: nobody who is alive."""
    last_seq: int
    behind_s: float | None
    """Since when it is not complete any more; None before it ever was."""


async def list_lanes(connection: Connection) -> list[Standing]:
    rows = await fetch_all(connection, "rules.lanes/list_lanes")
    return [Standing(*row) for row in rows]


async def list_workers(connection: Connection) -> list[str]:
    """Those that are alive and share the lanes, the oldest first."""
    rows = await fetch_all(connection, "rules.lanes/read_workers")
    return [holder for (holder,) in rows]


class Refusing(NamedTuple):
    """A worker that runs and cannot work."""

    worker: str
    reason: str


async def list_refusing(connection: Connection) -> list[Refusing]:
    rows = await fetch_all(connection, "rules.lanes/list_refusing")
    return [Refusing(*row) for row in rows]


async def note_refusal(settings: Settings, reason: str) -> None:
    """For the doctor: this process runs, and this is why it does nothing. Forgotten unless it is said again."""
    parameters = {
        "holder": f"{socket.gethostname()}/{os.getpid()}",
        "known_s": _KNOWN_S,
        "problem": reason.replace("\0", ""),
    }
    with suppress(TocsinError, psycopg.Error, TimeoutError):  # it may be Postgres that is away
        async with asyncio.timeout(_WITHIN_S):
            async with open_session(settings, "worker") as connection:
                await connection.execute(statement("rules.lanes/note_refusal"), parameters)
