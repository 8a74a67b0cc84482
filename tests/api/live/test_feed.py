"""Each connection gets each record that concerns it once, in order, whatever restarts meanwhile."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path

import pytest

from cdc.publisher import Publisher
from tests.api.live.feeds import EVERYTHING, append, read_until, running_feed, selection
from tests.client.service import bring_up, delete_stream
from tests.streams import read_stream
from tests.wait import eventually
from tocsin.api.live import subscription as subscriptions
from tocsin.api.live.feed import LiveFeed
from tocsin.api.live.subscription import FeedEnded, LiveBatch, Resync
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings
from tocsin.embedded import embedded_nats


async def test_new_records_reach_every_connection_in_order(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 3)
    async with running_feed(settings) as feed:
        with feed.subscribe(EVERYTHING, None) as first, feed.subscribe(EVERYTHING, None) as second:
            reading = asyncio.gather(read_until(first, 8), read_until(second, 8))
            await append(connection, 5)
            await bring_up(settings)
            assert list(await reading) == [[4, 5, 6, 7, 8], [4, 5, 6, 7, 8]]


async def test_a_connection_resumes_from_the_tables_and_then_from_the_stream(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 700)
    async with running_feed(settings) as feed:
        with feed.subscribe(EVERYTHING, 5) as subscription:
            reading = asyncio.create_task(read_until(subscription, 720))
            await append(connection, 20)
            await bring_up(settings)
            assert await reading == list(range(6, 721))


async def test_the_body_from_the_tables_equals_the_published_one(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 2)
    await bring_up(settings)
    published = [message.data for message in await read_stream(settings, 2)]
    async with running_feed(settings) as feed:
        with feed.subscribe(EVERYTHING, 0) as subscription:
            answer = await subscription.next(5)
    assert isinstance(answer, LiveBatch)
    assert [record.body for record in answer.records] == published


async def test_a_connection_gets_only_the_owners_of_its_grants_and_what_its_query_selects(
    settings: Settings, connection: Connection
) -> None:
    for owner in ("plant-7", "plant-8", "other", ""):
        await append(connection, 1, owner)
    async with running_feed(settings) as feed:
        granted = selection("", "plant-*")
        queried = selection("owner:plant-8", "plant-*")
        with feed.subscribe(granted, 0) as mine, feed.subscribe(queried, 0) as one:
            for owner in ("other", "", "plant-7", "plant-8"):
                await append(connection, 1, owner)
            await bring_up(settings)
            assert await read_until(mine, 8) == [1, 2, 7, 8]
            assert await read_until(one, 8) == [2, 8]


async def test_a_connection_that_nothing_concerns_is_not_slow(
    settings: Settings, connection: Connection
) -> None:
    async with running_feed(settings, max_records=10) as feed:
        with feed.subscribe(selection("", "plant-7"), None) as subscription:
            await append(connection, 100, "other")
            await bring_up(settings)
            await eventually(lambda: _is_at(feed, 100), "the feed has read everything")
            await append(connection, 1, "plant-7")
            await bring_up(settings)
            assert await read_until(subscription, 101) == [101]


async def test_a_slow_connection_gets_resync_and_continues_with_the_newest(
    settings: Settings, connection: Connection
) -> None:
    async with running_feed(settings, max_records=10) as feed:
        with feed.subscribe(EVERYTHING, None) as subscription:
            await append(connection, 3)
            await bring_up(settings)
            assert await read_until(subscription, 3) == [1, 2, 3]
            await append(connection, 40)
            await bring_up(settings)
            await eventually(lambda: _is_at(feed, 43), "the feed has read everything")
            resync = await subscription.next(5)
            assert isinstance(resync, Resync)
            assert (resync.after, resync.last) == (3, 43)
            await append(connection, 1)
            await bring_up(settings)
            assert await read_until(subscription, 44) == [44]


async def test_a_position_too_far_back_or_of_another_log_is_a_resync(
    settings: Settings, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "MAX_BACKLOG", 500)
    await append(connection, 1200)
    async with running_feed(settings) as feed:
        with feed.subscribe(EVERYTHING, 10) as far, feed.subscribe(EVERYTHING, 9999) as foreign:
            read = await read_until(far, 1200)
            assert read[:-1] == list(range(11, 511))
            assert read[-1] == Resync(510, 1200, "more than 500 records were missed")
            assert await foreign.next(5) == Resync(9999, 1200, "the log has no record 9999")


async def test_records_that_the_stream_lost_are_read_from_the_tables(
    settings: Settings, connection: Connection
) -> None:
    """The stream begins again behind records that the feed has not seen."""
    await append(connection, 2)
    await bring_up(settings)
    async with running_feed(settings) as feed:
        with feed.subscribe(EVERYTHING, None) as subscription:
            seq = feed.last
            await append(connection, 3)
            await feed._take(6, f"{settings.subjects}.event.x", json.dumps({"type": "x"}).encode())
            assert (seq, await read_until(subscription, 6)) == (2, [3, 4, 5, 6])


async def test_a_subscription_ends_with_the_credentials_it_was_opened_with(
    settings: Settings, connection: Connection
) -> None:
    async with running_feed(settings) as feed:
        with (
            feed.subscribe(EVERYTHING, None, "revoked") as gone,
            feed.subscribe(EVERYTHING, None, "other") as stays,
        ):
            waiting = asyncio.create_task(gone.next(60))
            feed.end("the token was revoked", lambda subject: subject == "revoked")
            assert await waiting == FeedEnded("the token was revoked")
            await append(connection, 1)
            await bring_up(settings)
            assert await read_until(stays, 1) == [1]


async def test_kills_and_restarts_of_nats_leave_no_hole_and_no_duplicate(
    settings: Settings, connection: Connection, tmp_path: Path
) -> None:
    with embedded_nats(tmp_path) as server:
        there = settings.model_copy(update={"nats": server.url, "lease_ttl_s": 2.0})
        async with (
            running(Service("cdc", Publisher(there).run)),
            running_feed(there) as feed,
        ):
            with feed.subscribe(EVERYTHING, None) as live, feed.subscribe(EVERYTHING, 0) as resumed:
                reading = asyncio.gather(read_until(live, 160), read_until(resumed, 160))
                for kill in range(4):
                    await append(connection, 20)
                    await eventually(partial(_is_at, feed, 40 * kill + 5), "some records were read")
                    server.kill()
                    await append(connection, 20)
                    server.start()
                assert list(await reading) == [list(range(1, 161))] * 2


async def test_a_stream_that_was_deleted_and_rebuilt_repeats_nothing(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 5)
    await bring_up(settings)
    async with running_feed(settings) as feed:
        with feed.subscribe(EVERYTHING, 2) as subscription:
            assert await read_until(subscription, 5) == [3, 4, 5]
            await delete_stream(settings)
            await append(connection, 2)
            await bring_up(settings)
            assert await read_until(subscription, 7) == [6, 7]


async def _is_at(feed: LiveFeed, seq: int) -> bool:
    return feed.last >= seq
