"""The record lane: one worker at a time, in commit order, from a position that does not depend on the stream."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cdc.publisher import Publisher
from rules.dispatch.dispatcher import Dispatcher
from rules.lanes.lane import LaneMessage
from rules.lanes.record_lane import RecordLane
from rules.lanes.service import Lanes
from tests.cdc.published_records import append_steps, head, live, published
from tests.rules.apply.apply_setup import T0, action, actions, note, put, rows, rule
from tests.rules.lanes.lane_setup import partitions
from tests.sessions import Sessions
from tests.sql import one_row
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings


def lane_worker(settings: Settings, name: str = "lane") -> Service:
    return Service(name, Lanes(settings, [RecordLane(settings, [Dispatcher()])]).run)


async def position(connection: Connection) -> int:
    rows = await partitions(connection, "record")
    return int(rows[0]["last_seq"]) if rows else -1


async def wait_until_read(connection: Connection) -> None:
    async def is_read() -> bool:
        return await position(connection) == await head(connection)

    await eventually(is_read, "the lane is at the head of the log", within=60)


async def test_the_position_follows_all_records_of_the_log(
    settings: Settings, connection: Connection
) -> None:
    await put(connection, action("tell") + rule("each", "tell"))
    async with running(Service("cdc", Publisher(settings).run), lane_worker(settings)):
        await note(connection)
        await append_steps(connection, 3)
        await wait_until_read(connection)
        assert len(await actions(connection)) == 1


@pytest.mark.parametrize("how", ["removed", "rebuilt with less"])
async def test_a_stream_that_is_created_again_starts_nothing_a_second_time_even_if_the_actions_are_deleted(
    settings: Settings, connection: Connection, how: str
) -> None:
    await put(connection, action("tell") + rule("each", "tell"))
    async with running(Service("cdc", Publisher(settings).run), lane_worker(settings)):
        for _ in range(5):
            await note(connection)
        await wait_until_read(connection)
        assert len(await actions(connection)) == 5
        await connection.execute("delete from tocsin.action_event")
        await connection.execute("delete from tocsin.action")
        async with live(settings) as other:
            await other.js.delete_stream(settings.stream)
        if how == "removed":
            await published(settings, connection)
        seq = await note(connection)
        await wait_until_read(connection)
        await published(settings, connection)
        assert [row["event_seq"] for row in await actions(connection)] == [seq]
    async with running(Service("cdc", Publisher(settings).run), lane_worker(settings)):
        later = await note(connection)
        await wait_until_read(connection)
    assert [row["event_seq"] for row in await actions(connection)] == [seq, later]


async def test_a_new_lane_begins_at_the_oldest_rule(settings: Settings, connection: Connection) -> None:
    await note(connection)
    await note(connection)
    await put(connection, action("tell") + rule("each", "tell"))
    applied = await head(connection)
    seq = await note(connection)
    async with running(Service("cdc", Publisher(settings).run), lane_worker(settings)):
        await wait_until_read(connection)
    assert [row["event_seq"] for row in await actions(connection)] == [seq]
    await connection.execute("delete from tocsin.lane_partition")
    async with live(settings) as other:
        await RecordLane(settings, []).open(connection, other.js)
    assert await position(connection) == applied


async def test_without_any_rule_a_new_lane_begins_at_the_head(
    settings: Settings, connection: Connection
) -> None:
    await note(connection)
    await note(connection)
    async with live(settings) as other:
        await RecordLane(settings, []).open(connection, other.js)
        assert await position(connection) == 2
        await note(connection)
        await RecordLane(settings, []).open(connection, other.js)
    assert await position(connection) == 2, "one that has begun stays where it is"


async def test_a_standby_continues_at_the_position_of_the_first(
    settings: Settings, connection: Connection
) -> None:
    """Both run from the start; one drains, and the other continues when it stops."""
    await put(connection, action("tell") + rule("each", "tell"))
    first, second = lane_worker(settings, "first"), lane_worker(settings, "second")
    async with running(Service("cdc", Publisher(settings).run), second):
        async with running(first):
            for _ in range(3):
                await note(connection)
            await wait_until_read(connection)
            holder = (await partitions(connection, "record"))[0]["holder"]
        await note(connection)
        await wait_until_read(connection)
        assert (await partitions(connection, "record"))[0]["holder"] is not None
    assert holder is not None
    assert len(await actions(connection)) == 4
    assert len(await rows(connection, "action_step")) == 4


async def test_the_watermark_is_just_before_the_newest_record(
    settings: Settings, connection: Connection
) -> None:
    lane = RecordLane(settings, [])
    body = b'{"recordedat": "2026-03-02T08:00:00Z", "time": "2020-01-01T00:00:00Z"}'
    just_before = T0 - timedelta(microseconds=1)
    assert lane.watermark_of(LaneMessage(1, T0, "s", body)) == just_before
    assert lane.watermark_of(LaneMessage(1, T0, "s", b'{"time": "2026-03-02T08:00:00Z"}')) == just_before
    for unknown in (b"", b"[]", b"{}", b'{"time": "x"}', b'{"time": 5}'):
        assert lane.watermark_of(LaneMessage(1, T0, "s", unknown)) is None


async def test_the_watermark_of_an_idle_lane_is_now_unless_a_session_is_about_to_commit(
    settings: Settings, connection: Connection, sessions: Sessions
) -> None:
    lane = RecordLane(settings, [])
    await note(connection)
    before = (await one_row(connection, "select tocsin.instant() as now"))["now"]
    quiet = await lane.idle_watermark(connection, 1)
    assert quiet is not None
    assert quiet >= before - timedelta(microseconds=1)
    assert await lane.idle_watermark(connection, 0) is None, "a record is not read yet"
    writer = await sessions("writer")
    async with writer.transaction():
        await note(writer)
        assert await lane.idle_watermark(connection, 1) is None, "what is being written may be older than now"
    assert await lane.idle_watermark(connection, 1) is None
    assert await lane.idle_watermark(connection, 2) is not None
