"""The record lane: one worker at a time, in commit order, from a position that does not depend on the stream."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from cdc.adopt import adopt, find_loss
from cdc.log_reader import LogReader
from cdc.publisher import Publisher
from rules.dispatch.dispatcher import Dispatcher
from rules.lanes.lane import LaneMessage
from rules.lanes.record_lane import RecordLane
from rules.lanes.service import Lanes
from tests.cdc.published_records import (
    append_steps,
    forget_after,
    head,
    live,
    publish_all,
    publish_all_but,
    published,
)
from tests.rules.apply.apply_setup import T0, action, actions, note, put, rows, rule
from tests.rules.lanes.lane_setup import jetstream, partitions
from tests.sessions import Sessions
from tests.sql import all_rows, one_row
from tests.wait import eventually
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings


def lane_worker(settings: Settings, name: str = "lane") -> Service:
    return Service(name, Lanes(settings, [RecordLane(settings, [Dispatcher()])]).run)


async def accept_loss(settings: Settings, connection: Connection) -> None:
    async with jetstream(settings) as js:
        loss = await find_loss(js, settings, LogReader(connection))
    assert loss is not None
    await adopt(LogReader(connection), settings, loss, Actor("ann", "test", T0))


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


async def expire(settings: Settings) -> None:
    """Let the stream forget all messages that it has, as their age does."""
    async with live(settings) as other:
        config = (await other.js.stream_info(settings.stream)).config
        await other.js.update_stream(replace(config, max_age=0.1, duplicate_window=0.1))

        async def is_empty() -> bool:
            return (await other.js.stream_info(settings.stream)).state.messages == 0

        await eventually(is_empty, "the stream is empty")
        await other.js.update_stream(config)


@pytest.mark.parametrize("later", [0, 3])
async def test_records_that_expired_in_the_stream_are_read_from_the_table_in_order(
    settings: Settings, connection: Connection, later: int
) -> None:
    await put(connection, action("tell") + rule("each", "tell"))
    async with running(Service("cdc", Publisher(settings).run), lane_worker(settings)):
        seqs = [await note(connection) for _ in range(2)]
        await wait_until_read(connection)
    small = settings.model_copy(update={"worker_batch": 2})
    seqs += [await note(connection) for _ in range(5)]
    await publish_all(settings)
    await expire(settings)
    async with running(Service("cdc", Publisher(settings).run)):
        seqs += [await note(connection) for _ in range(later)]
        async with running(lane_worker(small)):
            await wait_until_read(connection)
            seqs.append(await note(connection))
            await wait_until_read(connection)
    assert [row["event_seq"] for row in await actions(connection)] == seqs
    steps = await rows(connection, "action_step", "seq")
    started = {row["id"]: row["event_seq"] for row in await actions(connection)}
    assert [started[row["action_id"]] for row in steps] == seqs


async def test_records_that_the_stream_lost_are_read_from_the_table(
    settings: Settings, connection: Connection
) -> None:
    await put(connection, action("tell") + rule("each", "tell"))
    seqs = [await note(connection) for _ in range(6)]
    await publish_all_but(settings, connection, seqs[1], seqs[2], seqs[4])
    async with running(lane_worker(settings)):

        async def are_started() -> bool:
            return [row["event_seq"] for row in await actions(connection)] == seqs

        await eventually(are_started, "each event starts its action, in order")


async def test_records_that_expired_and_are_a_recorded_gap_are_passed_over(
    settings: Settings, connection: Connection
) -> None:
    await put(connection, action("tell") + rule("each", "tell"))
    async with running(Service("cdc", Publisher(settings).run), lane_worker(settings)):
        first = await note(connection)
        await wait_until_read(connection)
    lost = await note(connection)
    await publish_all(settings)
    last = await note(connection)
    await publish_all(settings)
    await expire(settings)
    await connection.execute("delete from tocsin.event where seq = %s", (lost,))
    lane = lane_worker(settings)
    async with running(lane):

        async def waits() -> bool:
            return f"the log has no record at seq {lost}" in (lane.problem or "")

        await eventually(waits, "the lane waits at the hole")
        assert [row["event_seq"] for row in await actions(connection)] == [first]
        await connection.execute(
            "insert into tocsin.log_gap values (%s, %s, 'lost', 'ann', tocsin.instant())", (lost, lost)
        )

        async def is_started() -> bool:
            return [row["event_seq"] for row in await actions(connection)] == [first, last]

        await eventually(is_started, "the lane continues behind the gap")


@pytest.mark.parametrize("refired", [False, True])
async def test_records_that_the_log_has_lost_start_nothing_and_those_written_since_do(
    settings: Settings, connection: Connection, refired: bool
) -> None:
    """A failover lost commits. The stream has them, and a fire is repeated with the id that it had."""
    await put(connection, action("tell") + rule("each", "tell"))
    async with running(Service("cdc", Publisher(settings).run), lane_worker(settings)):
        first = await note(connection)
        await wait_until_read(connection)
    kept = await head(connection)
    await note(connection)
    await note(connection)
    await publish_all(settings)
    lost = await all_rows(connection, "select id, ts, type from tocsin.event where seq > %s", (kept,))
    await forget_after(connection, kept)
    if refired:
        again = NewEvent(lost[0]["ts"], "caused", lost[0]["type"], {}, id=lost[0]["id"])
        await append_events(connection, [again])
    lane = lane_worker(settings)
    async with running(lane):

        async def waits() -> bool:
            return "the stream has another record than the log" in (lane.problem or "")

        await eventually(waits, "the lane waits for the operator")
        assert [row["event_seq"] for row in await actions(connection)] == [first]
        await accept_loss(settings, connection)
        async with running(Service("cdc", Publisher(settings).run)):
            last = await note(connection)
            await wait_until_read(connection)
    started = await actions(connection)
    repeated = [lost[0]["id"]] if refired else []
    assert [row["event_id"] for row in started][1:-1] == repeated
    assert (started[0]["event_seq"], started[-1]["event_seq"]) == (first, last)
