"""Feeds on real servers: writers, readers and a publisher."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.cdc.published_records import T0
from tocsin.api.live.feed import LiveFeed
from tocsin.api.live.query import parse_query
from tocsin.api.live.selection import Selection
from tocsin.api.live.subscription import FeedEnded, LiveBatch, Resync, Subscription
from tocsin.core.db import Connection, pool
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings
from tocsin.policy import AccessRole, Grant

EVERYTHING = Selection((Grant(AccessRole.VIEWER, "*"),), parse_query(""))


def selection(query: str = "", *patterns: str) -> Selection:
    return Selection(
        tuple(Grant(AccessRole.VIEWER, pattern) for pattern in patterns or ("*",)), parse_query(query)
    )


@asynccontextmanager
async def running_feed(settings: Settings, max_records: int = 1000) -> AsyncIterator[LiveFeed]:
    async with pool(settings, "api", 3) as sessions:
        feed = LiveFeed(settings, sessions, max_records=max_records)
        async with running(Service("live", feed.run)):
            await feed.wait_until_started()
            yield feed


async def append(connection: Connection, count: int, owner: str = "plant-7") -> int:
    return await append_events(
        connection, [NewEvent(T0, "caused", "noted", {"n": n}, owner=owner) for n in range(count)]
    )


async def read_until(subscription: Subscription, last: int) -> list[int | Resync | FeedEnded]:
    """The seqs of all records until `last`, and what else came."""
    read: list[int | Resync | FeedEnded] = []
    async with asyncio.timeout(60):
        while last not in read:
            answer = await subscription.next(5)
            if not isinstance(answer, LiveBatch):
                read.append(answer)
                if isinstance(answer, FeedEnded) or answer.last >= last:
                    return read
                continue
            read += [record.seq for record in answer.records]
    return read
