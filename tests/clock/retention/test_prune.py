"""Old partitions are dropped; partitions that a reader, a run or a rule still needs are kept."""

from __future__ import annotations

import uuid
from datetime import date, timedelta

import psycopg
import pytest

from cdc.log_reader import LogReader
from clock.retention.loop import prune_hourly
from clock.retention.plan import DatapointDay, Limits, LogRange, plan_pruning
from clock.retention.prune import Pruned, prune, read_plan
from tests.clock.clock_setup import T0
from tests.clock.retention.old_log import DAY, NOW, fill, mark_read_up_to, set_now_to_end
from tests.core.log_partitions import partitions, small_partitions
from tests.records import events
from tests.sessions import Sessions
from tests.sql import all_rows, one_row
from tests.wait import eventually
from tocsin.core.db import Connection, statement
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings


@pytest.fixture
def short(settings: Settings) -> Settings:
    return settings.model_copy(update={"keep_events_per_rule": 3})


async def fill_and_mark_read(connection: Connection, count: int = 25) -> None:
    await small_partitions(connection, 10)
    await fill(connection, count)
    await mark_read_up_to(connection, count)
    await set_now_to_end(connection)


async def range_starts(connection: Connection) -> list[int]:
    names = await partitions(connection)
    return sorted(int(name.rsplit("_", 1)[1]) for name in names if name.startswith("event_"))


async def test_old_full_ranges_are_dropped_in_all_tables(connection: Connection, short: Settings) -> None:
    await fill_and_mark_read(connection)
    done = await prune(connection, short)
    assert done.tables == [
        f"{table}_{start}" for start in (0, 10) for table in ("action_step", "datapoint_calculated", "event")
    ]
    assert not {name.rsplit("_", 1)[1] for name in await partitions(connection)} & {"0", "10"}
    assert await LogReader(connection).horizon() == 20
    commits = await one_row(connection, "select min(last_seq), max(last_seq) from tocsin.log_commit")
    assert commits == {"min": 20, "max": 26}
    pruned = (await events(connection))[-1]
    assert (pruned["type"], pruned["origin"], pruned["seq"]) == ("log-pruned", "derived", 26)
    assert pruned["payload"]["horizon"] == 20
    again = await prune(connection, short)
    assert again == Pruned()


async def test_young_records_are_kept(connection: Connection, short: Settings) -> None:
    await small_partitions(connection, 10)
    await fill(connection, 15)
    await fill(connection, 15, at=350 * DAY)
    await mark_read_up_to(connection, 30)
    await set_now_to_end(connection)
    planned = await read_plan(connection, short)
    assert [log_range.start for log_range in planned.ranges] == [0]
    assert planned.kept[0] == ("records 10 to 19", "younger than 90 days")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("update tocsin.cdc_report set last_seq = 18", "the stream has them up to 18"),
        ("update tocsin.cdc_report set last_seq = null", "the stream has them up to 0"),
        ("update tocsin.lane_partition set last_seq = 18", "workers have read up to 18"),
    ],
)
async def test_records_that_the_stream_or_a_worker_has_not_read_are_kept(
    connection: Connection, short: Settings, change: str, why: str
) -> None:
    await fill_and_mark_read(connection)
    await connection.execute(change.encode())
    await prune(connection, short)
    planned = await read_plan(connection, short)
    assert planned.kept[0].why == why
    assert (await range_starts(connection))[0] == (10 if "18" in change else 0)


async def test_an_instance_without_workers_prunes_its_log(connection: Connection, short: Settings) -> None:
    await fill_and_mark_read(connection)
    await connection.execute("delete from tocsin.lane_partition")
    assert (await prune(connection, short)).horizon == 20


async def test_the_event_that_started_an_active_run_is_kept(connection: Connection, short: Settings) -> None:
    await fill_and_mark_read(connection)
    await connection.execute(
        "insert into tocsin.action (id, name, action_rule, event_id, event_seq, document, state, started_at,"
        " correlation_id) values (%(id)s, 'tell', 'page', %(id)s, 12, '{}', 'running', %(at)s, %(id)s)",
        {"id": uuid.uuid4(), "at": T0},
    )
    await prune(connection, short)
    planned = await read_plan(connection, short)
    assert planned.kept[0] == ("records 10 to 19", "an active run was started by record 12")
    await connection.execute("update tocsin.action set state = 'completed'")
    assert (await prune(connection, short)).horizon == 20


async def test_the_newest_events_of_a_rule_outlive_their_partition(
    connection: Connection, short: Settings
) -> None:
    await small_partitions(connection, 10)
    await fill(connection, 5, "rare")
    await fill(connection, 20, "chatty")
    await mark_read_up_to(connection, 25)
    await set_now_to_end(connection)
    done = await prune(connection, short)
    assert done.events_kept == 3
    kept = await all_rows(connection, "select seq, rule, payload from tocsin.event_kept order by seq")
    assert [(row["seq"], row["rule"], row["payload"]["number"]) for row in kept] == [
        (3, "rare", 2),
        (4, "rare", 3),
        (5, "rare", 4),
    ]
    everything = dict.fromkeys(("schedule", "rule", "owner", "origin"))
    after_3 = {**everything, "type": "tested", "after": 3, "limit": 100}
    for query, order in (("read_first_events", 1), ("read_newest_events", -1)):
        listed = await connection.execute(statement(f"tocsin.cli/{query}"), after_3)
        assert [row[0] for row in await listed.fetchall()][::order] == [4, 5, 20, 21, 22, 23, 24, 25]


async def test_kept_events_are_deleted_when_newer_events_of_the_rule_replace_them(
    connection: Connection, short: Settings
) -> None:
    await small_partitions(connection, 10)
    await fill(connection, 11, "rare")
    await mark_read_up_to(connection, 11)
    await set_now_to_end(connection)
    await prune(connection, short)
    rows = await all_rows(connection, "select seq from tocsin.event_kept")
    assert [row["seq"] for row in rows] == [9]
    await fill(connection, 10, "rare", at=DAY)
    await mark_read_up_to(connection, 22)
    await set_now_to_end(connection)
    await prune(connection, short)
    # Behind the horizon are 20, 21 and 22.
    assert await all_rows(connection, "select seq from tocsin.event_kept") == []


async def test_a_reader_delays_a_drop_and_no_append_waits_for_either(
    connection: Connection, short: Settings, sessions: Sessions
) -> None:
    await fill_and_mark_read(connection)
    reader = await sessions("reader")
    async with reader.transaction():
        await reader.execute("select * from tocsin.event where seq < 10")
        done = await prune(connection, short)
        assert done.tables == ["action_step_0", "datapoint_calculated_0"]
        assert [item.what for item in done.left] == ["event_0"]
        # The horizon is raised although a table is left: no reader reads below it.
        assert await LogReader(connection).horizon() == 10
        writer = await sessions("writer")
        await writer.execute("set lock_timeout = '5s'")
        await append_events(writer, [NewEvent(T0, "caused", "meanwhile")])
    done = await prune(connection, short)
    assert done.tables[0] == "event_0"
    assert (await range_starts(connection))[0] == 20


async def test_a_day_of_datapoints_is_dropped_when_all_of_it_is_old_and_read(
    connection: Connection, short: Settings
) -> None:
    first = date(2026, 3, 1)
    await connection.execute("select tocsin.extend_datapoints(%s, %s)", (first, first + 3 * DAY))
    now = T0.replace(hour=0) + 31 * DAY
    await connection.execute("select set_config('tocsin.now', %s, false)", (now.isoformat(),))
    assert [item.why for item in (await read_plan(connection, short)).kept][
        -1
    ] == "workers have not read them all yet"
    await connection.execute(
        "insert into tocsin.lane_partition (lane, partition, watermark) values ('data', 0, %s)", (now,)
    )
    done = await prune(connection, short)
    assert done.tables == ["datapoint_20260301", "datapoint_20260302"]
    assert [name for name in await partitions(connection) if name.startswith("datapoint_2")] == [
        "datapoint_20260303",
        "datapoint_20260304",
    ]


async def test_a_day_that_is_in_use_leaves_later_days_and_not_the_rows(
    connection: Connection, short: Settings, sessions: Sessions
) -> None:
    """Postgres refuses to detach a second partition while the first is being detached."""
    first = date(2026, 3, 1)
    await connection.execute("select tocsin.extend_datapoints(%s, %s)", (first, first + 3 * DAY))
    now = T0.replace(hour=0) + 31 * DAY
    await connection.execute("select set_config('tocsin.now', %s, false)", (now.isoformat(),))
    await connection.execute(
        "insert into tocsin.lane_partition (lane, partition, watermark) values ('data', 0, %s)", (now,)
    )
    reader = await sessions("reader")
    async with reader.transaction():
        await reader.execute("select * from tocsin.datapoint")
        done = await prune(connection, short)
        assert [item.what for item in done.left] == ["datapoint_20260301"]
        assert (await prune(connection, short)).left, "the run ends while the reader is there"
    assert (await prune(connection, short)).tables == ["datapoint_20260301", "datapoint_20260302"]


async def test_the_leading_clock_prunes_regularly(connection: Connection, short: Settings) -> None:
    await small_partitions(connection, 10)
    await fill(connection, 25)
    await mark_read_up_to(connection, 25)
    await connection.execute("select set_config('tocsin.now', '', false)")
    service = Service("retention", lambda: prune_hourly(short, first_s=0.0, every_s=0.1))

    async def is_gone() -> bool:
        return await range_starts(connection) == [20, 30, 40]

    async with running(service):
        await eventually(is_gone, "the old partitions are gone")


async def test_a_range_is_kept_while_records_are_added_to_it(connection: Connection, short: Settings) -> None:
    await small_partitions(connection, 10)
    await fill(connection, 9)
    await mark_read_up_to(connection, 9)
    await set_now_to_end(connection)
    assert (await prune(connection, short)).horizon is None
    assert (await read_plan(connection, short)).kept[0].why == "records are still added to it"


async def test_the_horizon_never_passes_the_head(connection: Connection) -> None:
    await small_partitions(connection, 10)
    await fill(connection, 5)
    with pytest.raises(psycopg.DatabaseError, match="the horizon cannot be raised to 10: the log is at 5"):
        await connection.execute("select tocsin.raise_horizon(10, 100)")


def test_a_range_is_never_dropped_before_an_older_one() -> None:
    ranges = [
        LogRange(0, 10, ("event_0",), 1, NOW - DAY),
        LogRange(10, 20, ("event_10",), 1, T0),
        LogRange(20, 30, ("event_20",), 1, None),
    ]
    limits = Limits(NOW, 100, 100, None, None, NOW)
    planned = plan_pruning(
        ranges, [DatapointDay(T0.date(), "datapoint_20260302", 5)], limits, 90 * DAY, 30 * DAY
    )
    assert (planned.ranges, planned.bytes) == ((), 5)
    assert [item.why for item in planned.kept] == ["younger than 90 days"]
    planned = plan_pruning(ranges[1:], [], limits, 90 * DAY, 30 * DAY)
    assert [log_range.start for log_range in planned.ranges] == [10]
    assert planned.kept[0].why == "records are still added to it"


async def test_the_last_datapoint_of_each_series_outlives_its_day(
    connection: Connection, short: Settings
) -> None:
    """A replay that begins on the first remaining day finds there which series were stale."""
    days = [T0 + number * DAY for number in range(3)]
    await connection.execute("select tocsin.extend_datapoints(%s, %s)", (days[0].date(), days[2].date()))
    for seq, (owner, at) in enumerate(
        [("old", days[0]), ("old", days[0] + timedelta(hours=1)), ("both", days[0]), ("both", days[1])], 1
    ):
        await connection.execute(
            "insert into tocsin.datapoint (arrived_at, stream_seq, position, owner, key, ts, value)"
            " values (%(at)s, %(seq)s, 0, %(owner)s, 'a', %(at)s, to_jsonb(%(seq)s::integer))",
            {"at": at, "seq": seq, "owner": owner},
        )
    for owner in ("old", "both", "never"):
        await connection.execute(
            "insert into tocsin.current_value (owner, key, partition, value, ts, arrived_at, stream_seq,"
            " first_arrived_at) values (%(owner)s, 'a', 0, '1', %(at)s, %(at)s, 1, %(at)s)",
            {"owner": owner, "at": days[2]},
        )
    now = days[2] + 30 * DAY
    await connection.execute("select set_config('tocsin.now', %s, false)", (now.isoformat(),))
    await connection.execute(
        "insert into tocsin.lane_partition (lane, partition, watermark) values ('data', 0, %s)", (now,)
    )
    done = await prune(connection, short)
    assert done.tables == ["datapoint_20260302", "datapoint_20260303"]
    kept = await all_rows(connection, "select owner, value from tocsin.datapoint_kept order by owner")
    assert [(row["owner"], row["value"]) for row in kept] == [("both", 4), ("old", 2)]
