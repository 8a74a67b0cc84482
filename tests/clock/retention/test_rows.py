"""Rows are deleted with the records they belong to, except open, active and armed ones."""

from __future__ import annotations

from datetime import timedelta

import pytest

from clock.retention.prune import prune, read_plan
from rules.alarms.queries import list_alarm_events
from tests.clock.clock_setup import T0
from tests.clock.retention.old_log import DAY, NOW, fill, mark_read_up_to, set_now_to_end
from tests.clock.retention.old_rows import (
    append_alarm_event,
    append_step,
    begin_log,
    end_log,
    prune_rows,
    put_alarm,
    put_audit_row,
    put_rule_state,
    put_run,
    put_schedule,
    put_series,
    put_version,
    read_ids,
)
from tests.records import events
from tests.sql import all_rows, one_row
from tocsin.core.db import Connection
from tocsin.core.instant import MICROSECOND, instant_text
from tocsin.core.settings import Settings


async def test_alarms_are_deleted_with_their_last_event(connection: Connection, short: Settings) -> None:
    await begin_log(connection)
    gone = await put_alarm(connection, "gone")
    await append_alarm_event(connection, gone)
    half = await put_alarm(connection, "half")
    await append_alarm_event(connection, half)
    still_open = await put_alarm(connection, "open", state="open")
    await append_alarm_event(connection, still_open)
    await fill(connection, 10)
    await append_alarm_event(connection, half)
    await end_log(connection)
    assert await prune_rows(connection, short) == {"alarm": 1}
    assert await read_ids(connection, "alarm") == {half, still_open}


async def test_silences_are_deleted_when_the_log_begins_after_their_end(
    connection: Connection, short: Settings
) -> None:
    await begin_log(connection)
    for days, ended in ((-9, True), (-9, False), (399, True)):
        await connection.execute(
            "insert into tocsin.silence (id, matcher, starts_at, ends_at, created_by, created_via, created_at,"
            " ended_at) select gen_random_uuid(), 'true', at, at + interval '1 hour', 'ann', 'test', at,"
            " case when %(ended)s then at end from (select %(at)s::timestamptz as at) t",
            {"ended": ended, "at": T0 + days * DAY},
        )
    await fill(connection, 20)
    await end_log(connection)
    assert await prune_rows(connection, short) == {"silence": 1}


async def test_an_alarm_is_kept_with_a_kept_event(connection: Connection, short: Settings) -> None:
    await begin_log(connection)
    first = await put_alarm(connection, "hot")
    await append_alarm_event(connection, first)
    second = await put_alarm(connection, "hot")
    await append_alarm_event(connection, second)
    await fill(connection, 10)
    await end_log(connection)
    keeping = short.model_copy(update={"keep_events_per_rule": 1})
    assert await prune_rows(connection, keeping) == {"alarm": 1}
    assert await read_ids(connection, "alarm") == {second}
    assert [event["seq"] for event in await list_alarm_events(connection, second)] == [2]


async def test_runs_are_deleted_with_their_last_record_together_with_their_links_and_waits(
    connection: Connection, short: Settings
) -> None:
    await begin_log(connection)
    gone = await put_run(connection, "completed", seq=1, waits=True)
    await append_step(connection, gone)
    slow = await put_run(connection, "completed", seq=2)
    await append_step(connection, slow)
    grouped = await put_run(connection, "completed", seq=2)
    await fill(connection, 10)
    await append_step(connection, slow)
    await connection.execute(
        "insert into tocsin.action_event (action_rule, event_id, event_seq, action_id)"
        " values ('late', gen_random_uuid(), 11, %s)",
        (grouped,),
    )
    await end_log(connection)
    assert await prune_rows(connection, short) == {"action": 1}
    assert await read_ids(connection, "action") == {slow, grouped}
    assert {row["action_id"] for row in await all_rows(connection, "select * from tocsin.action_event")} == {
        slow,
        grouped,
    }
    assert await all_rows(connection, "select * from tocsin.action_wait") == []


async def test_a_dead_run_keeps_its_records_for_its_own_retention(
    connection: Connection, short: Settings
) -> None:
    await begin_log(connection)
    await fill(connection, 20)
    await end_log(connection)
    old = await put_run(connection, "failed", seq=1, ended_at=NOW - 31 * DAY)
    young = await put_run(connection, "timed_out", seq=2, ended_at=NOW - 29 * DAY)
    assert await prune_rows(connection, short) == {}
    kept = (await read_plan(connection, short)).kept[0]
    assert kept == ("records 0 to 9", "a dead run that can be retried was started by record 2")
    assert await read_ids(connection, "action") == {old, young}
    long_retention = short.model_copy(update={"dead_action_retention_d": 40.0})
    assert (await read_plan(connection, long_retention)).kept[0].why.endswith("by record 1")
    short_retention = short.model_copy(update={"dead_action_retention_d": 28.0})
    await connection.execute("update tocsin.action set ended_at = %s where id = %s", (T0, old))
    assert await prune_rows(connection, short_retention) == {"action": 1}
    # It ended after the log began: its last record is there.
    assert await read_ids(connection, "action") == {young}


@pytest.mark.parametrize("state", ["running", "failed"])
async def test_a_run_whose_event_was_pruned_keeps_no_other_records(
    connection: Connection, short: Settings, state: str
) -> None:
    """An operator retried it after it had been dead for long."""
    await begin_log(connection)
    await fill(connection, 25)
    late = await put_run(connection, "failed", seq=2)
    await append_step(connection, late)
    await end_log(connection)
    await connection.execute("select tocsin.raise_horizon(10, 0)")
    await connection.execute("update tocsin.action set state = %s, ended_at = %s", (state, NOW - DAY))
    assert (await prune(connection, short)).horizon == 20
    assert await read_ids(connection, "action") == {late}


@pytest.mark.parametrize("state", ["gathering", "queued", "running"])
async def test_an_active_run_is_kept_however_old(connection: Connection, short: Settings, state: str) -> None:
    await begin_log(connection)
    await fill(connection, 20)
    held = await put_run(connection, state, seq=11)
    await end_log(connection)
    assert await prune_rows(connection, short) == {}
    assert await read_ids(connection, "action") == {held}


async def test_lineages_and_event_keys_are_deleted_with_their_event(
    connection: Connection, short: Settings
) -> None:
    await begin_log(connection)
    await fill(connection, 12)
    ids = [event["id"] for event in await events(connection)]
    await connection.execute("select set_config('tocsin.now', %s, false)", (T0.isoformat(),))
    for index in (0, 11):
        row = {"id": ids[index], "key": f"key-{index}"}
        await connection.execute(
            "insert into tocsin.event_lineage (event_id, lineage) values (%(id)s, '{rule}')", row
        )
        await connection.execute(
            "insert into tocsin.ingest_event (key, event_id, at) values (%(key)s, %(id)s, tocsin.instant())",
            row,
        )
    await end_log(connection)
    long = short.model_copy(update={"event_key_retention_d": 500.0})
    assert await prune_rows(connection, long) == {"event_lineage": 1}
    assert await prune_rows(connection, short) == {"ingest_event": 1}
    left = await one_row(connection, "select key, event_id from tocsin.ingest_event")
    assert left == {"key": "key-11", "event_id": ids[11]}


async def test_audit_rows_have_their_own_retention_except_the_last_one_of_an_existing_schedule(
    connection: Connection, short: Settings
) -> None:
    await begin_log(connection)
    await end_log(connection)
    await put_schedule(connection, "there", "active")
    for name, days in (("there", 900), ("there", 800), ("there", 1), ("gone", 900), ("young", 700)):
        await put_audit_row(connection, name, NOW - days * DAY)
    assert await prune_rows(connection, short) == {"audit": 2}
    left = await all_rows(connection, "select name, at from tocsin.audit order by at")
    assert [(row["name"], (NOW - row["at"]).days) for row in left] == [
        ("there", 800),
        ("young", 700),
        ("there", 1),
    ]


async def test_ended_schedules_are_deleted_unless_a_document_or_a_run_names_them(
    connection: Connection, short: Settings
) -> None:
    await begin_log(connection)
    for name, status in (("a", "fired"), ("b", "cancelled"), ("c", "active"), ("d", "paused")):
        await put_schedule(connection, name, status)
    await put_schedule(connection, "named", "ended")
    await put_version(connection, "schedule", "named", 1, 1, None, {"owner": ""})
    await put_schedule(connection, "dead", "failed")
    await put_schedule(connection, "young", "fired", at=NOW)
    await fill(connection, 12)
    await end_log(connection)
    await put_run(connection, "failed", seq=11, rule="schedule:dead")
    assert await prune_rows(connection, short) == {"schedule": 2}
    left = await all_rows(connection, "select name from tocsin.schedule order by name")
    assert [row["name"] for row in left] == ["c", "d", "dead", "named", "young"]


async def test_versions_are_kept_while_a_record_or_datapoint_evaluated_by_them_remains(
    connection: Connection, short: Settings
) -> None:
    await begin_log(connection)
    await fill(connection, 14)
    await end_log(connection)
    await connection.execute("select tocsin.extend_datapoints('2027-01-01', '2027-01-02')")
    spans = [(1, 3), (3, 5), (5, 12), (12, None)]
    for number, (begin, end) in enumerate(spans, 1):
        await put_version(connection, "event_rule", "hot", number, begin, end)
    await put_version(connection, "event_rule", "removed", 1, 2, 4)
    for partition in (0, 1):
        for seq, until in ((3, T0), (5, T0 if partition else NOW), (12, NOW)):
            await connection.execute(
                "insert into tocsin.rule_cutover values ('data', %s, %s, 7, %s)", (partition, seq, until)
            )
    # Partition 0 still has datapoints that were evaluated before the apply at 5.
    assert await prune_rows(connection, short) == {"rule_version": 2, "rule_cutover": 1}
    left = await all_rows(connection, "select name, version from tocsin.rule_version order by name, version")
    assert [(row["name"], row["version"]) for row in left] == [("hot", 2), ("hot", 3), ("hot", 4)]
    rows = await all_rows(connection, "select partition, rules_seq from tocsin.rule_cutover order by 1, 2")
    assert [(row["partition"], row["rules_seq"]) for row in rows] == [
        (0, 3),
        (0, 5),
        (0, 12),
        (1, 5),
        (1, 12),
    ]


async def test_gaps_are_kept_for_the_remaining_datapoints_and_for_fresh_series(
    connection: Connection, short: Settings
) -> None:
    """A replay may begin with arrivals from up to a week before the first remaining datapoint."""
    await begin_log(connection)
    await fill(connection, 10)
    await end_log(connection)
    first_day = NOW.replace(hour=0, minute=0, second=0, microsecond=0)
    await connection.execute("select tocsin.extend_datapoints(%s, %s)", (first_day.date(), first_day.date()))
    week_before = first_day - 7 * DAY
    gaps = [
        (0, week_before - 2 * DAY),
        (0, week_before - MICROSECOND),
        (0, week_before),
        (1, week_before - 3 * DAY),
        (1, week_before - 2 * DAY),
        (1, week_before - DAY),
    ]
    for partition, ended_at in gaps:
        await connection.execute(
            "insert into tocsin.arrival_gap values (%s, %s, %s)",
            (partition, ended_at - timedelta(minutes=1), ended_at),
        )
    await put_series(connection, "quiet", "watched", week_before - 2.5 * DAY)
    await put_series(connection, "quiet", "unwatched", week_before - 9 * DAY)
    await connection.execute("update tocsin.current_value set partition = 1")
    await connection.execute(
        "select tocsin.arm('watchdog', 'quiet', 'watched', %s, '{\"owner\": \"quiet\", \"within_us\": 1}')",
        (NOW,),
    )
    removed = await prune_rows(connection, short)
    assert removed["arrival_gap"] == 3
    rows = await all_rows(connection, "select partition, ended_at from tocsin.arrival_gap order by 1, 2")
    assert [tuple(row.values()) for row in rows] == [gaps[2], gaps[4], gaps[5]]


async def test_the_newest_apply_is_kept_even_if_it_only_removed_documents(
    connection: Connection, short: Settings
) -> None:
    await begin_log(connection)
    await fill(connection, 14)
    await end_log(connection)
    await put_version(connection, "action_rule", "page", 1, 1, 5)
    await connection.execute("insert into tocsin.action_limit values ('page', '{}'), ('forgotten', '{}')")
    assert await prune_rows(connection, short) == {"action_limit": 1}
    await put_version(connection, "action_rule", "other", 1, 6, None)
    assert await prune_rows(connection, short) == {"rule_version": 1, "action_limit": 1}


async def test_a_series_without_data_for_a_year_is_deleted_and_a_stale_one_leaves_an_event(
    connection: Connection, short: Settings
) -> None:
    await begin_log(connection)
    await end_log(connection)
    await connection.execute("insert into tocsin.lane_partition (lane, partition) values ('data', 0)")
    await connection.execute(
        "insert into tocsin.system_health (system, holds_from) values ('plant', tocsin.instant())"
    )
    year = NOW - 366 * DAY
    await put_series(connection, "watched", "a", year, stale=True)
    await put_series(connection, "watched", "b", year, stale=True)
    await put_series(connection, "plain", "a", year)
    await put_series(connection, "younger", "a", NOW - 364 * DAY)
    await put_series(connection, "unhandled", "a", year, stale=True, handled=False)
    await put_series(connection, "armed", "a", year)
    await connection.execute("select tocsin.arm('watchdog', 'armed', 'a', %s)", (NOW,))
    await put_series(connection, "member", "a", year, stale=True)
    await connection.execute(
        "insert into tocsin.system_member (system, owner, key, required, covered)"
        " values ('plant', 'member', 'a', true, true)"
    )
    await put_series(connection, "alarmed", "a", year, stale=True)
    await put_alarm(connection, "hot", state="open", owner="alarmed")
    for owner in ("watched", "plain", "younger"):
        await put_rule_state(connection, "hot", owner)
    await put_rule_state(connection, "held", "watched", phase="open")
    assert await prune_rows(connection, short) == {"current_value": 3, "rule_state": 2}
    left = await all_rows(connection, "select owner from tocsin.current_value order by owner")
    assert [row["owner"] for row in left] == ["alarmed", "armed", "member", "unhandled", "younger"]
    (forgotten,) = [event for event in await events(connection) if event["type"] == "series-forgotten"]
    assert (forgotten["owner"], forgotten["origin"]) == ("watched", "derived")
    assert forgotten["payload"] == {"count": 2, "keys": ["a", "b"], "last_arrival": instant_text(year)}
    states = await all_rows(connection, "select event_rule, owner from tocsin.rule_state order by 1")
    assert [tuple(row.values()) for row in states] == [("held", "watched"), ("hot", "younger")]


async def test_a_series_is_kept_while_it_has_a_datapoint(connection: Connection, short: Settings) -> None:
    await begin_log(connection)
    await end_log(connection)
    year = NOW - 366 * DAY
    await connection.execute("select tocsin.extend_datapoints(%(day)s, %(day)s)", {"day": year.date()})
    await put_series(connection, "kept", "a", year)
    await connection.execute(
        "insert into tocsin.datapoint (arrived_at, stream_seq, position, owner, key, ts, value)"
        " values (%(at)s, 1, 0, 'kept', 'a', %(at)s, '1')",
        {"at": year},
    )
    # No worker has read that day, so it is not dropped.
    assert await prune_rows(connection, short) == {}


async def test_old_states_of_rules_over_events_are_deleted(connection: Connection, short: Settings) -> None:
    await begin_log(connection)
    await end_log(connection)
    year = (NOW - 366 * DAY).isoformat()
    month = (NOW - 30 * DAY).isoformat()
    await put_rule_state(connection, "hot", "old", lane="record", last_opened_at=year)
    await put_rule_state(connection, "hot", "young", lane="record", last_opened_at=month)
    await put_rule_state(connection, "hot", "tracked", lane="record", tracks={"": [1, month, []]})
    assert await prune_rows(connection, short) == {"rule_state": 1}
    left = await all_rows(connection, "select owner from tocsin.rule_state order by 1")
    assert [row["owner"] for row in left] == ["tracked", "young"]


async def test_no_row_is_deleted_before_the_records_it_belongs_to(
    connection: Connection, short: Settings
) -> None:
    await begin_log(connection)
    await put_alarm(connection, "hot")
    await put_run(connection, "completed", seq=1)
    await put_schedule(connection, "once", "fired")
    await fill(connection, 20)
    await mark_read_up_to(connection, 5)
    await set_now_to_end(connection)
    assert await prune_rows(connection, short) == {}
