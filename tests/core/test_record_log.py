"""`tocsin.append`: gapless, in commit order, fenced by the epoch; and its partitions."""

from __future__ import annotations

import asyncio
import uuid

import psycopg
import pytest

from tests.clock.clock_setup import T0
from tests.core.log_partitions import partitions, small_partitions
from tests.sessions import Sessions
from tests.sql import all_rows, blocked, one_row
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent

STEP = (
    "select tocsin.append('{}', array[row(gen_random_uuid(), gen_random_uuid(), 'tell', null, 0, 1, 'due',"
    " gen_random_uuid(), null, null)::tocsin.step_input])"
)


def event(name: str = "x") -> NewEvent:
    return NewEvent(T0, "caused", "tested", {"name": name})


async def seqs(connection: Connection) -> list[int]:
    return [row["seq"] for row in await all_rows(connection, "select seq from tocsin.event order by seq")]


async def test_events_are_numbered_from_one_in_the_order_given(connection: Connection) -> None:
    events = [event(str(number)) for number in range(3)]
    assert await append_events(connection, events) == 3
    rows = await all_rows(connection, "select * from tocsin.event order by seq")
    assert [(row["seq"], row["id"], row["payload"]["name"]) for row in rows] == [
        (number + 1, appended.id, str(number)) for number, appended in enumerate(events)
    ]
    assert [row["correlation_id"] for row in rows] == [appended.id for appended in events]
    assert await append_events(connection, [event()]) == 4


async def test_events_and_steps_share_one_sequence(connection: Connection) -> None:
    await append_events(connection, [event()])
    await connection.execute(STEP.encode())
    await append_events(connection, [event()])
    assert await seqs(connection) == [1, 3]
    assert (await one_row(connection, "select seq from tocsin.action_step"))["seq"] == 2
    commits = await all_rows(
        connection, "select first_seq, last_seq from tocsin.log_commit order by last_seq"
    )
    assert [(row["first_seq"], row["last_seq"]) for row in commits] == [(1, 1), (2, 2), (3, 3)]


async def test_a_rollback_leaves_no_gap(connection: Connection) -> None:
    await append_events(connection, [event()])
    async with connection.transaction(force_rollback=True):
        assert await append_events(connection, [event(), event()]) == 3
    assert await append_events(connection, [event()]) == 2
    with pytest.raises(psycopg.errors.CheckViolation):
        await append_events(connection, [NewEvent(T0, "invented", "tested")])
    assert await append_events(connection, [event()]) == 3
    assert await seqs(connection) == [1, 2, 3]


async def test_no_records_take_no_number(connection: Connection) -> None:
    assert await append_events(connection, []) == 0
    await append_events(connection, [event()])
    assert await append_events(connection, []) == 1
    assert len(await all_rows(connection, "select * from tocsin.log_commit")) == 1


async def test_an_id_is_accepted_once(connection: Connection) -> None:
    one = event()
    await append_events(connection, [one])
    with pytest.raises(psycopg.errors.UniqueViolation):
        await append_events(connection, [one])
    assert await seqs(connection) == [1]


async def test_a_stale_epoch_is_rejected_even_with_nothing_to_append(connection: Connection) -> None:
    await connection.execute("update tocsin.log_head set epoch = 7")
    assert await append_events(connection, [event()], epoch=7) == 1
    for epoch in (6, 8):
        for events in ([event()], []):
            with pytest.raises(psycopg.DatabaseError, match=f"epoch {epoch} was superseded by 7") as refused:
                await append_events(connection, events, epoch=epoch)
            assert refused.value.sqlstate == "TS001"
    assert (await one_row(connection, "select seq, epoch from tocsin.event")) == {"seq": 1, "epoch": 7}


async def test_the_floor_is_the_least_head(connection: Connection) -> None:
    await append_events(connection, [event()])
    await connection.execute("update tocsin.log_head set floor = 50")
    assert await append_events(connection, [event()]) == 51
    assert await append_events(connection, [event()]) == 52


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
async def test_an_older_snapshot_cannot_append_under_an_older_epoch(
    connection: Connection, sessions: Sessions, level: str
) -> None:
    """It would read the epoch of its snapshot, and commit under it."""
    zombie = await sessions("zombie")
    await zombie.execute(f"set default_transaction_isolation = '{level}'".encode())
    with pytest.raises(psycopg.DatabaseError, match="read committed") as refused:
        await append_events(zombie, [event()], epoch=0)
    assert refused.value.sqlstate == "TS003"
    assert await seqs(connection) == []


async def test_a_second_writer_waits_and_comes_after(
    connection: Connection, sessions: Sessions, watch: Connection
) -> None:
    other = await sessions("other")
    async with connection.transaction():
        await append_events(connection, [event("first")])
        second = asyncio.create_task(append_events(other, [event("second")]))
        await eventually(lambda: blocked(watch, other), "the second writer waits")
    assert await second == 2


async def test_sequence_is_commit_order_for_concurrent_writers(
    connection: Connection, sessions: Sessions
) -> None:
    """Four writers with rollbacks. A reader never sees a new seq below one that it has seen."""
    writers = [await sessions(f"writer {number}") for number in range(4)]
    reader = await sessions("reader")
    writing = True

    async def write(session: Connection, number: int) -> None:
        for turn in range(25):
            async with session.transaction(force_rollback=turn % 5 == 4):
                await append_events(session, [event(f"{number}/{turn}") for _ in range(turn % 3 + 1)])

    async def read() -> None:
        seen: list[int] = []
        while writing:
            now = await seqs(reader)
            assert now[: len(seen)] == seen
            assert now == list(range(1, len(now) + 1))
            seen = now

    reading = asyncio.create_task(read())
    await asyncio.gather(*(write(session, number) for number, session in enumerate(writers)))
    writing = False
    await reading
    kept = sum(turn % 3 + 1 for turn in range(25) if turn % 5 != 4)
    assert await seqs(connection) == list(range(1, 4 * kept + 1))


async def test_a_batch_may_cross_the_boundary_of_partitions(connection: Connection) -> None:
    await small_partitions(connection, 10)
    assert await append_events(connection, [event() for _ in range(25)]) == 25
    homes = await all_rows(
        connection,
        "select tableoid::regclass::text as home, count(*) as n from tocsin.event group by 1 order by 1",
    )
    # Seq 0 is never used, so the first range holds nine.
    assert [(row["home"].rpartition(".")[2], row["n"]) for row in homes] == [
        ("event_0", 9),
        ("event_10", 10),
        ("event_20", 6),
    ]


async def test_extending_is_idempotent_and_follows_the_head(connection: Connection) -> None:
    await small_partitions(connection, 10)
    before = await partitions(connection)
    assert before == sorted(
        f"{table}_{start}"
        for table in ("event", "action_step", "datapoint_calculated")
        for start in (0, 10, 20)
    )
    assert (await one_row(connection, "select tocsin.extend_log() as n"))["n"] == 0
    await append_events(connection, [event() for _ in range(12)])
    assert (await one_row(connection, "select tocsin.extend_log() as n"))["n"] == 1
    assert set(await partitions(connection)) - set(before) == {
        "event_30",
        "action_step_30",
        "datapoint_calculated_30",
    }


async def test_concurrent_extenders_make_each_partition_once(
    connection: Connection, sessions: Sessions
) -> None:
    others = [await sessions(f"extender {number}") for number in range(4)]
    added = await asyncio.gather(*(one_row(one, "select tocsin.extend_log(5) as n") for one in others))
    assert sorted(row["n"] for row in added) == [0, 0, 0, 3]


async def test_a_partition_is_attached_while_the_log_is_written(
    connection: Connection, sessions: Sessions
) -> None:
    writer = await sessions("writer")
    await connection.execute("set lock_timeout = '5s'")
    async with writer.transaction():
        await append_events(writer, [event()])
        assert (await one_row(connection, "select tocsin.extend_log(3) as n"))["n"] == 1


async def test_each_commit_wakes_the_publisher(connection: Connection, sessions: Sessions) -> None:
    listener = await sessions("listener")
    await listener.execute("listen tocsin_log")
    await append_events(connection, [event()])
    async for notice in listener.notifies(timeout=20, stop_after=1):
        assert notice.channel == "tocsin_log"
        return
    pytest.fail("no notice came")


async def test_an_event_may_name_its_cause(connection: Connection) -> None:
    cause, chain = uuid.uuid4(), uuid.uuid4()
    await append_events(
        connection, [NewEvent(T0, "caused", "tested", source_event_id=cause, correlation_id=chain)]
    )
    row = await one_row(connection, "select * from tocsin.event")
    assert (row["source_event_id"], row["correlation_id"]) == (cause, chain)
