"""The publisher fills an accepted hole with tombstones and stops at any other hole."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from cdc.errors import LogHole
from cdc.gaps import record_gap
from cdc.log_reader import LogReader
from cdc.publisher import Publisher
from tests.cdc.published_records import (
    T0,
    append,
    append_steps,
    bodies,
    live,
    publish_all,
    published,
    smaller,
)
from tests.core.log_partitions import small_partitions
from tests.records import events
from tests.sql import all_rows
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

ACTOR = Actor("ann", "test", T0)


def shape(found: list[dict[str, object]]) -> list[str]:
    return [str(body["type"]) for body in found]


async def test_partitions_dropped_before_they_were_published_are_recorded_and_skipped(
    settings: Settings, connection: Connection
) -> None:
    await small_partitions(connection, 10)
    await append(connection, 5)
    await publish_all(settings)
    await append(connection, 12)
    await append_steps(connection, 6)
    await connection.execute("select tocsin.extend_log()")
    for table in ("event_0", "action_step_0", "event_10", "action_step_10"):
        await connection.execute(f"drop table tocsin.{table}")
    async with running(Service("cdc", Publisher(settings).run)):
        await published(settings, connection)
    found = await bodies(settings)
    assert [body["seq"] for body in found] == list(range(1, len(found) + 1))
    assert shape(found[:5]) == ["noted"] * 5
    assert shape(found[5:19]) == ["record-missing"] * 14
    assert shape(found[19:23]) == ["action-step-due"] * 4
    assert found[5]["data"] == {
        "reason": "dropped from the log before it was published",
        "from_seq": 6,
        "until_seq": 19,
    }
    # One event and one audit row.
    (gap_event,) = [body for body in found if body["type"] == "log-gap-recorded"]
    assert (gap_event["origin"], gap_event["data"]["from"], gap_event["data"]["until"]) == ("derived", 6, 19)
    (actor,) = await all_rows(connection, "select who, verb, kind, name from tocsin.audit")
    assert actor == {"who": "tocsin_cdc", "verb": "record-gap", "kind": "log", "name": settings.stream}


async def test_two_publishers_record_what_was_dropped_once(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 2)
    await publish_all(settings)
    await append(connection, 5)
    await connection.execute("delete from tocsin.event where seq < 6")
    async with live(settings) as first, live(settings) as second:
        await asyncio.gather(first.drain(), second.drain())
    assert [gap[:2] for gap in await LogReader(connection).gaps()] == [(3, 5)]
    assert shape(await bodies(settings, 3))[:5] == ["record-missing"] * 3 + ["noted"] * 2
    assert len([row for row in await events(connection) if row["type"] == "log-gap-recorded"]) == 1


async def test_an_accepted_hole_is_filled_with_tombstones_of_the_same_ids_each_time(
    settings: Settings, connection: Connection
) -> None:
    small = smaller(settings, cdc_chunk=7, cdc_in_flight=20)
    await append(connection, 5)
    # As after an adopt: the log has a long gap.
    await connection.execute("update tocsin.log_head set floor = 105")
    await append(connection, 5)
    async with live(small) as publisher:
        with pytest.raises(LogHole, match=r"record 6 is missing .*`tocsin cdc adopt`"):
            await publisher.drain()
        await record_gap(connection, settings, 6, 105, "lost", ACTOR)
        await publisher.resume()
        await publisher.drain()
        before = await bodies(settings)
        await publisher.js.delete_stream(settings.stream)
        await publisher.resume()
        await publisher.drain()
    assert await bodies(settings) == before
    assert [body["seq"] for body in before] == list(range(1, 112))
    assert shape(before) == ["noted"] * 5 + ["record-missing"] * 100 + ["noted"] * 5 + ["log-gap-recorded"]
    assert len({body["id"] for body in before}) == 111
    assert before[5]["kind"] == "gap"


async def test_the_next_leader_resumes_inside_a_gap(settings: Settings, connection: Connection) -> None:
    await append(connection, 2)
    await connection.execute("update tocsin.log_head set floor = 22")
    await record_gap(connection, settings, 3, 22, "lost", ACTOR)
    async with live(smaller(settings, cdc_chunk=5)) as publisher:
        for _ in range(3):
            await publisher.step()
    async with live(settings) as publisher:
        assert 2 < publisher.publisher.position < 22
        await publisher.drain()
    assert shape(await bodies(settings)) == ["noted"] * 2 + ["record-missing"] * 20 + ["log-gap-recorded"]


@pytest.mark.parametrize(("first", "last"), [(2, 3), (3, 4), (3, 3), (4, 3), (0, 0), (6, 9), (3, 6)])
async def test_only_a_hole_can_be_recorded(
    settings: Settings, connection: Connection, first: int, last: int
) -> None:
    await append(connection, 5)
    await connection.execute("delete from tocsin.event where seq = 4")
    with pytest.raises(psycopg.DatabaseError, match=f"no hole from {first} to {last}") as refused:
        await record_gap(connection, settings, first, last, "lost", ACTOR)
    assert refused.value.sqlstate == "TS005"
    assert await LogReader(connection).gaps() == []
    await record_gap(connection, settings, 4, 4, "lost", ACTOR)
    with pytest.raises(psycopg.errors.ExclusionViolation):
        await record_gap(connection, settings, 4, 4, "lost", ACTOR)


@pytest.mark.parametrize(
    ("missing", "after", "expected"),
    [
        ("1 = 0", 0, None),
        ("seq = 4", 0, (4, 4)),
        ("seq in (4, 5, 8)", 0, (4, 5)),
        ("seq in (4, 5, 8)", 5, (8, 8)),
        ("seq in (4, 5, 8)", 4, (5, 5)),
        ("seq >= 9", 0, (9, 10)),
        ("seq <= 3", 0, (1, 3)),
        ("seq <= 3", 3, None),
    ],
)
async def test_the_first_hole_is_found(
    connection: Connection, missing: str, after: int, expected: tuple[int, int] | None
) -> None:
    await append(connection, 3)
    await append_steps(connection, 3)
    await append(connection, 4)
    for table in ("event", "action_step"):
        await connection.execute(f"delete from tocsin.{table} where {missing}".encode())
    assert await LogReader(connection).first_hole(after) == expected
    assert await LogReader(connection).first_hole(10) is None
