"""The status of lanes and workers, for `tocsin doctor` and the metrics."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

import psycopg

from tocsin.core.db import Connection, fetch_all, fetch_one, open_service_session, statement
from tocsin.core.errors import TocsinError
from tocsin.core.settings import Settings

# Longer than the longest pause between two tries of a service.
_EXPIRES_S = 15.0
_TIMEOUT_S = 2.0


class PartitionStatus(NamedTuple):
    lane: str
    partition: int
    holder: str | None
    """None: no worker that is alive."""
    last_seq: int
    behind_s: float | None
    """Seconds since its watermark; None before its first one."""
    canary_error: str | None = None
    """Why its last canary was not accepted; None if it was."""


async def list_lanes(connection: Connection) -> list[PartitionStatus]:
    rows = await fetch_all(connection, "rules.lanes/list_lanes")
    return [PartitionStatus(*row) for row in rows]


class RecentGaps(NamedTuple):
    """The arrival gaps of the last hour, in all partitions."""

    number: int
    partitions: int
    last_began_at: datetime | None
    last_ended_at: datetime | None


async def count_recent_gaps(connection: Connection) -> RecentGaps:
    row = await fetch_one(connection, "rules.lanes/count_gaps")
    assert row is not None
    return RecentGaps(*row)


async def list_workers(connection: Connection) -> list[str]:
    """The workers that are alive and share the lanes, oldest first."""
    rows = await fetch_all(connection, "rules.lanes/read_workers")
    return [holder for (holder,) in rows]


class WorkerProblem(NamedTuple):
    """The reason why a running worker cannot work."""

    worker: str
    reason: str
    remedy: str


async def list_worker_problems(connection: Connection) -> list[WorkerProblem]:
    rows = await fetch_all(connection, "rules.lanes/list_worker_problems")
    return [WorkerProblem(*row) for row in rows]


async def record_worker_problem(settings: Settings, error: TocsinError) -> None:
    """Record why this process cannot work, for `tocsin doctor`.

    The row expires unless it is recorded again.
    """
    parameters = {
        "holder": f"{socket.gethostname()}/{os.getpid()}",
        "expires_s": _EXPIRES_S,
        "problem": error.message.replace("\0", ""),
        "remedy": error.remedy.replace("\0", ""),
    }
    with suppress(TocsinError, psycopg.Error, TimeoutError):  # Postgres itself may be unreachable
        async with asyncio.timeout(_TIMEOUT_S):
            async with open_service_session(settings, "worker") as connection:
                await connection.execute(statement("rules.lanes/record_worker_problem"), parameters)
