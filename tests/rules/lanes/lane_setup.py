"""A data lane for tests: producers, workers in this process, and the rows that they write."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import nats
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

from rules.lanes.data_lane import DataLane, DatapointWork
from rules.lanes.data_stream import ensure_data_stream
from rules.lanes.service import Lanes
from schemas.wire.subjects import datapoint_subject
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.service import Service
from tocsin.core.settings import Settings

OWNERS = [f"plant {number}" for number in range(24)]


@asynccontextmanager
async def jetstream(settings: Settings) -> AsyncIterator[JetStreamContext]:
    bus = await nats.connect(settings.nats.split(","))
    try:
        yield bus.jetstream(timeout=20)
    finally:
        await bus.close()


async def send(
    settings: Settings, values: Iterable[int], owners: Iterable[str] = OWNERS, identity: str = ""
) -> int:
    """Send one datapoint per owner and value; returns their number. A repeated `identity` is stored once."""
    headers = {"Nats-Msg-Id": identity} if identity else None
    sent = 0
    chosen = list(owners)
    async with jetstream(settings) as js:
        for value in values:
            for owner in chosen:
                subject = datapoint_subject(settings.subjects, owner, "temperature")
                await js.publish(subject, json.dumps({"value": value}).encode(), headers=headers)
                sent += 1
    return sent


async def make_stream(settings: Settings) -> None:
    async with jetstream(settings) as js:
        await ensure_data_stream(js, settings, 1)


def lane_worker(name: str, settings: Settings, *works: DatapointWork) -> Service:
    return Service(name, Lanes(settings, [DataLane(settings, works)]).run)


async def partitions(connection: Connection, lane: str = "data") -> list[dict[str, Any]]:
    return await all_rows(
        connection,
        "select *, held_until > tocsin.instant() as alive from tocsin.lane_partition where lane = %s"
        " order by partition",
        (lane,),
    )


async def shares(connection: Connection) -> list[int]:
    """The number of partitions of each living holder, the largest first."""
    held = [row["holder"] for row in await partitions(connection) if row["holder"] and row["alive"]]
    return sorted((held.count(holder) for holder in set(held)), reverse=True)


async def wait_for_shares(connection: Connection, *expected: int, within: float = 30.0) -> None:
    async def are_shared() -> bool:
        return await shares(connection) == list(expected)

    await eventually(are_shared, f"the partitions are shared {expected}", within)


async def wait_for_rows(connection: Connection, table: str, count: int, within: float = 60.0) -> None:
    async def are_there() -> bool:
        (row,) = await all_rows(connection, f"select count(*) as n from {table}")
        return bool(row["n"] >= count)

    await eventually(are_there, f"{count} rows in {table}", within)


async def has_stream(settings: Settings, name: str) -> bool:
    """By its name: a list of streams ends after 256, and a test run creates more."""
    async with jetstream(settings) as js:
        try:
            await js.stream_info(name)
        except NotFoundError:
            return False
    return True
