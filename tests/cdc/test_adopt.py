"""After a loss in Postgres the log goes on behind the stream: what was published stays, nothing comes twice."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from cdc.adopt import Loss, adopt, find_loss
from cdc.errors import Stopped
from cdc.log_reader import LogReader
from rules.erasure.erase import begin_or_continue
from tests.cdc.published_records import (
    T0,
    append,
    append_steps,
    bodies,
    forget_after,
    head,
    live,
    log,
    publish_all,
    publish_all_but,
    write,
)
from tests.core.log_partitions import small_partitions
from tests.rules.apply.apply_setup import action, put, versions
from tests.sessions import Sessions
from tests.sql import all_rows, blocked, one_row
from tests.wait import eventually
from tocsin.core.audit import Actor
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection
from tocsin.core.errors import Refused
from tocsin.core.settings import Settings

ACTOR = Actor("ann", "test", T0)


def differing(first: int, last: int, to_move: int) -> Loss:
    return Loss(first, last, in_stream=True, stream_differs=True, to_move=to_move)


async def loss_of(settings: Settings, connection: Connection) -> Loss | None:
    bus = await connect_bus(settings, "test")
    try:
        return await find_loss(bus.jetstream(), settings, LogReader(connection))
    finally:
        await bus.close()


async def adopt_now(settings: Settings, connection: Connection) -> tuple[Loss, int]:
    loss = await loss_of(settings, connection)
    assert loss is not None
    return loss, await adopt(LogReader(connection), settings, loss, ACTOR)


async def ids(connection: Connection) -> dict[int, str]:
    return {row["seq"]: str(row["id"]) for row in await log(connection)}


async def assert_whole(settings: Settings, connection: Connection) -> list[dict[str, Any]]:
    """Check that the publisher continues, that stream and log are equal, and that no loss is left."""
    await publish_all(settings)
    found = await bodies(settings)
    assert [body.get("seq", seq) for seq, body in enumerate(found, 1)] == list(range(1, len(found) + 1))
    assert {seq: found[seq - 1]["id"] for seq in await ids(connection)} == await ids(connection)
    assert await loss_of(settings, connection) is None
    commits = await all_rows(connection, "select first_seq, last_seq from tocsin.log_commit order by 2")
    covered = [seq for row in commits for seq in range(row["first_seq"], row["last_seq"] + 1)]
    assert covered == sorted(await ids(connection))
    return found


async def test_commits_that_postgres_lost_become_a_gap_and_the_log_continues_after_them(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 6)
    await append(connection, 4)
    await publish_all(settings)
    before = await bodies(settings)
    await forget_after(connection, 6)
    with pytest.raises(Stopped):
        await publish_all(settings)
    assert await adopt_now(settings, connection) == (differing(7, 10, 0), 0)
    assert await append(connection, 1) == 12
    found = await assert_whole(settings, connection)
    assert found[:10] == before
    assert (found[10]["type"], found[10]["origin"]) == ("log-gap-recorded", "caused")
    assert found[10]["data"] == {
        "from": 7,
        "until": 10,
        "reason": "postgres lost it, or another process published it",
        "who": "ann",
        "via": "test",
    }
    gap = await one_row(connection, "select from_seq, until_seq, who from tocsin.log_gap")
    assert gap == {"from_seq": 7, "until_seq": 10, "who": "ann"}
    (actor,) = await all_rows(connection, "select who, via, verb, new from tocsin.audit")
    assert (actor["who"], actor["via"], actor["verb"], actor["new"]["until"]) == (
        "ann",
        "test",
        "record-gap",
        10,
    )


@pytest.mark.parametrize("grown", [1, 3, 4, 5, 9, 30])
async def test_records_written_since_the_restore_are_moved_after_the_stream_in_their_order(
    settings: Settings, connection: Connection, grown: int
) -> None:
    await append(connection, 6)
    await append(connection, 4)
    await publish_all(settings)
    before = await bodies(settings)
    await forget_after(connection, 6)
    for number in range(grown):
        await (append if number % 3 else append_steps)(connection, 1)
    kept = await ids(connection)
    loss, moved = await adopt_now(settings, connection)
    assert (loss, moved) == (differing(7, 10, grown), grown)
    after = await ids(connection)
    assert {seq: after[seq if seq <= 6 else seq + 4] for seq in kept} == kept
    found = await assert_whole(settings, connection)
    assert found[:10] == before
    assert found[10 + grown]["data"]["moved"] == grown
    assert found[10 + grown]["data"]["moved_by"] == 4


async def test_a_foreign_message_in_the_middle_of_a_commit_is_skipped(
    settings: Settings, connection: Connection
) -> None:
    async with live(settings) as publisher:
        await append(connection, 2)
        await publisher.drain()
        await append(connection, 5)
        sent = await publisher.chain.send(await publisher.reader.read(2, 2))
        await publisher.chain.confirm(sent, 20)
        await publisher.js.publish(f"{settings.subjects}.event.caused.noted.x.y", b'{"id": 7}')
        await publisher.js.publish(f"{settings.subjects}.event.caused.noted.x.y", b'{"id": 8}')
    assert await adopt_now(settings, connection) == (differing(5, 6, 3), 3)
    found = await assert_whole(settings, connection)
    assert found[4:6] == [{"id": 7}, {"id": 8}]


async def test_rules_applied_since_the_restore_are_in_force_from_the_new_seq_of_their_event(
    settings: Settings, connection: Connection
) -> None:
    await put(connection, action("tell"))
    await append(connection, 3)
    await publish_all(settings)
    await forget_after(connection, 1)
    await append(connection, 1)
    await put(connection, action("tell", "other"))
    assert await versions(connection) == [("action", "tell", 1, 1, 3), ("action", "tell", 2, 3, None)]
    # Cutovers of the data lane at applies that are as far apart as the records are moved.
    for rules_seq in (1, 3, 6):
        await connection.execute(
            "insert into tocsin.rule_cutover values ('data', 0, %s, 77, null)", (rules_seq,)
        )
    await connection.execute("update tocsin.calc_position set rules_seq = 3")
    await adopt_now(settings, connection)
    assert await versions(connection) == [("action", "tell", 1, 1, 6), ("action", "tell", 2, 6, None)]
    cutovers = await all_rows(connection, "select rules_seq, seq from tocsin.rule_cutover order by 1")
    assert [(row["rules_seq"], row["seq"]) for row in cutovers] == [(1, 77), (6, 77), (9, 77)]
    [position] = await all_rows(connection, "select rules_seq from tocsin.calc_position")
    assert position["rules_seq"] == 6
    assert (await assert_whole(settings, connection))[5]["type"] == "rules-applied"


async def test_a_wait_moves_with_its_first_record_and_adopting_waits_for_a_worker_that_ends_one(
    settings: Settings, connection: Connection, sessions: Sessions, watch: Connection
) -> None:
    """An event from before the wait is moved with it, and still lies before it."""
    await append(connection, 1)
    await append(connection, 3)
    await publish_all(settings)
    await forget_after(connection, 1)
    await append(connection, 3)
    for step, after_seq in enumerate((1, 3, 4)):
        await wait_of(connection, step, after_seq)
    worker = await sessions("worker")

    async def waits() -> bool:
        return await blocked(watch, connection)

    loss = await loss_of(settings, connection)
    assert loss is not None
    async with worker.transaction():
        await worker.execute("delete from tocsin.action_wait where step = 2")
        adopting = asyncio.create_task(adopt(LogReader(connection), settings, loss, ACTOR))
        await eventually(waits, "adopting waits for the worker")
        log_is_free = "select tocsin.try_share_log() as free"
        assert await one_row(watch, log_is_free) == {"free": True}, "the worker needs it to end"
        await append(worker, 1)
    await adopting
    moved = await all_rows(connection, "select step, after_seq from tocsin.action_wait order by step")
    assert [tuple(row.values()) for row in moved] == [(0, 1), (1, 6)]


async def wait_of(connection: Connection, step: int, after_seq: int) -> None:
    id = uuid.uuid4()
    await connection.execute(
        "insert into tocsin.action (id, name, action_rule, event_id, event_seq, document, state, started_at,"
        " correlation_id) values (%(id)s, 'tell', 'page', %(id)s, 1, '{}', 'running', %(at)s, %(id)s)",
        {"id": id, "at": T0},
    )
    await connection.execute(
        "insert into tocsin.action_wait values (%s, %s, 1, 'true', %s)", (id, step, after_seq)
    )


async def test_a_stream_far_ahead_is_adopted_with_the_partitions_that_it_needs(
    settings: Settings, connection: Connection
) -> None:
    await small_partitions(connection, 10)
    async with live(settings) as publisher:
        await append(connection, 4)
        await publisher.drain()
        for _ in range(60):
            await publisher.js.publish(f"{settings.subjects}.event.caused.noted.x.y", b"{}")
    await append(connection, 23)
    assert await adopt_now(settings, connection) == (differing(5, 64, 23), 23)
    assert await append(connection, 5) == 93
    await assert_whole(settings, connection)


async def test_a_second_loss_does_not_touch_the_first(settings: Settings, connection: Connection) -> None:
    await append(connection, 4)
    await append(connection, 2)
    await publish_all(settings)
    await forget_after(connection, 4)
    await adopt_now(settings, connection)
    await append(connection, 3)
    await publish_all(settings)
    # Restored to the moment of the first adoption: its gap is the last entry of the log.
    await forget_after(connection, 4)
    await append(connection, 2)
    assert (await adopt_now(settings, connection))[0] == differing(7, 10, 2)
    gaps = await LogReader(connection).gaps()
    assert [gap[:2] for gap in gaps] == [(5, 6), (7, 10)]
    await assert_whole(settings, connection)


async def test_a_gap_among_moved_records_is_moved_with_them(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 4)
    await append(connection, 2)
    await publish_all(settings)
    await forget_after(connection, 4)
    await append(connection, 1)
    await connection.execute("update tocsin.log_head set floor = 8")
    await connection.execute("select tocsin.record_gap(6, 8, 'lost', 'ann')")
    await append(connection, 1)
    await adopt_now(settings, connection)
    assert [gap[:2] for gap in await LogReader(connection).gaps()] == [(5, 6), (8, 10)]
    found = await assert_whole(settings, connection)
    assert [body["type"] for body in found[6:]] == [
        *("noted", "record-missing", "record-missing", "record-missing", "noted", "log-gap-recorded"),
    ]


async def test_a_hole_is_accepted_at_the_position_of_the_publisher_or_before_it(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 10)
    async with live(settings) as publisher:
        sent = await publisher.chain.send(await publisher.reader.read(0, 6))
        await publisher.chain.confirm(sent, 20)
    await connection.execute("delete from tocsin.event where seq in (3, 4, 7, 8)")
    for expected in (Loss(7, 8, in_stream=False), Loss(3, 4, in_stream=True)):
        assert await adopt_now(settings, connection) == (expected, 0)
    await publish_all(settings)
    assert await loss_of(settings, connection) is None
    found = await bodies(settings)
    assert [body["type"] for body in found] == [
        *("noted" for _ in range(6)),
        *("record-missing", "record-missing", "noted", "noted", "log-gap-recorded", "log-gap-recorded"),
    ]


async def test_there_is_nothing_to_adopt_while_two_publishers_race(
    settings: Settings, connection: Connection
) -> None:
    assert await loss_of(settings, connection) is None
    done = asyncio.Event()

    async def publish() -> None:
        while not done.is_set():
            await publish_all(settings)

    async def look() -> None:
        while not done.is_set():
            assert await loss_of(settings, connection) is None

    async def write_all() -> None:
        await asyncio.gather(*(write(settings, seed, 60) for seed in range(2)))
        done.set()

    await asyncio.gather(publish(), publish(), look(), write_all())


async def test_messages_that_the_stream_lost_are_not_a_loss_of_the_log(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 9)
    await publish_all_but(settings, connection, 2, 5, 8, 9)
    assert await loss_of(settings, connection) is None


async def test_an_adopt_of_an_outdated_loss_changes_nothing(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 6)
    await append(connection, 4)
    await publish_all(settings)
    await forget_after(connection, 6)
    loss, _ = await adopt_now(settings, connection)
    with pytest.raises(
        Refused, match=r"nothing to adopt: the log is at 11.*nothing was changed: run the command again"
    ):
        await adopt(LogReader(connection), settings, loss, ACTOR)
    assert await head(connection) == 11
    assert len(await LogReader(connection).gaps()) == 1


async def test_writers_continue_while_the_log_is_moved(settings: Settings, connection: Connection) -> None:
    await append(connection, 20)
    await append(connection, 30)
    await publish_all(settings)
    await forget_after(connection, 20)
    writers = [asyncio.create_task(write(settings, seed, 80)) for seed in range(3)]
    while await head(connection) < 80:
        assert not all(writer.done() for writer in writers)
    loss, moved = await adopt_now(settings, connection)
    committed = sum(await asyncio.gather(*writers))
    assert (loss.first, loss.last, moved >= 60) == (21, 50, True)
    await publish_all(settings)
    assert await head(connection) == 50 + committed + 1
    found = await assert_whole(settings, connection)
    assert len(found) == 50 + committed + 1


async def test_log_and_stream_are_compared_in_the_range_that_both_have(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 6)
    await append(connection, 4)
    async with live(settings) as publisher:
        await publisher.drain()
        config = (await publisher.js.stream_info(settings.stream)).config
        await publisher.js.delete_stream(settings.stream)
        # A stream whose messages have all expired keeps its last sequence.
        config.first_seq = 11
        await publisher.js.add_stream(config)
    await forget_after(connection, 6)
    assert (await adopt_now(settings, connection))[0] == differing(7, 10, 0)
    await append(connection, 1)
    await publish_all(settings)
    assert [body["seq"] for body in await bodies(settings, 11)] == [11, 12]


async def test_an_erasure_moves_with_the_event_that_announced_it(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 4)
    await append(connection, 2)
    await publish_all(settings)
    await forget_after(connection, 4)
    assert (await begin_or_continue(connection, "ada", ACTOR)).seq == 5
    await begin_or_continue(connection, "bob", ACTOR)
    await adopt_now(settings, connection)
    rows = await all_rows(
        connection,
        "select x.owner, e.owner as of, e.type, x.seq > 6 as moved from tocsin.erasure x left join tocsin.event e"
        " using (seq) order by seq",
    )
    assert [tuple(row.values()) for row in rows] == [
        ("ada", "ada", "owner-forgotten", True),
        ("bob", "bob", "owner-forgotten", True),
    ]
