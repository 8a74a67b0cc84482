"""Runs of retention: dry runs, killed runs, and runs that meet locks of other transactions."""

from __future__ import annotations

import psycopg
import pytest

from clock.retention.prune import count_prunable, prune, read_plan
from clock.retention.report import PruneReport, read_prune_report
from clock.retention.rows import ROW_KINDS, read_bounds, remove_rows
from tests.clock.clock_setup import T0
from tests.clock.retention.old_log import DAY, NOW, fill
from tests.clock.retention.old_rows import (
    append_alarm_event,
    append_step,
    begin_log,
    end_log,
    prune_rows,
    put_alarm,
    put_rule_state,
    put_run,
    put_series,
    read_ids,
)
from tests.sessions import Sessions
from tests.sql import one_row
from tocsin.core.db import Connection, statement
from tocsin.core.errors import Refused
from tocsin.core.settings import Settings


async def test_a_dry_run_counts_what_a_run_removes(connection: Connection, short: Settings) -> None:
    await begin_log(connection)
    for number in range(3):
        gone = await put_alarm(connection, f"rule-{number}")
        await append_alarm_event(connection, gone)
        await put_run(connection, "completed", seq=1)
    await fill(connection, 10)
    await end_log(connection)
    counted = await count_prunable(connection, short, await read_plan(connection, short))
    assert counted == {"alarm": 3, "action": 3}
    assert await read_ids(connection, "alarm") != set()
    assert await prune_rows(connection, short) == counted
    row = await one_row(connection, "select removed, left_over, ended_at from tocsin.prune_report")
    assert row == {"removed": {"partitions": 3, **counted}, "left_over": [], "ended_at": NOW}


async def test_a_killed_run_is_continued_by_the_next_one(
    connection: Connection, short: Settings, sessions: Sessions, watch: Connection
) -> None:
    await begin_log(connection)
    for number in range(7):
        await put_run(connection, "completed", seq=1 + number % 3)
    await fill(connection, 12)
    await end_log(connection)
    await prune_log_only(connection, short)
    actions = next(kind for kind in ROW_KINDS if kind.table == "action")
    victim = await sessions("victim")
    bounds = await read_bounds(connection, short)
    killed: list[int] = []

    def kill(_table: str, gone: int) -> None:
        if gone == 4:
            killed.append(victim.info.backend_pid)
            with psycopg.connect(short.postgres, autocommit=True) as other:
                other.execute("select pg_terminate_backend(%s, 5000)", (killed[0],))

    with pytest.raises(psycopg.OperationalError):
        await remove_rows(victim, actions, bounds, chunk=2, on_progress=kill)
    assert len(await read_ids(connection, "action")) == 3
    assert await prune_rows(connection, short) == {"action": 3}
    links = await one_row(connection, "select count(*) as n from tocsin.action_event")
    assert links == {"n": 0}


async def prune_log_only(connection: Connection, settings: Settings) -> None:
    planned = await read_plan(connection, settings)
    await connection.execute("select tocsin.raise_horizon(%s, 0)", (planned.ranges[-1].until,))


async def test_a_row_and_a_table_that_another_transaction_has_locked_are_skipped(
    connection: Connection, short: Settings, sessions: Sessions
) -> None:
    await begin_log(connection)
    held = await put_run(connection, "failed", seq=1)
    free = await put_run(connection, "completed", seq=2)
    await put_alarm(connection, "gone")
    await fill(connection, 12)
    await end_log(connection)
    other = await sessions("other")
    async with other.transaction():
        await other.execute("select from tocsin.action where id = %s for update", (held,))
        await other.execute("lock table tocsin.event_lineage")
        # A prune that waited for the lock would run into the timeout of the test.
        done = await prune(connection, short)
        assert done.rows == {"alarm": 1, "action": 1}
        assert [item.what for item in done.left] == ["event_lineage"]
        assert await read_ids(connection, "action") == {held}
    assert await prune_rows(connection, short) == {"action": 1}
    assert free != held


async def test_a_chunk_that_is_being_deleted_blocks_no_writer(
    connection: Connection, short: Settings, sessions: Sessions
) -> None:
    await begin_log(connection)
    old = await put_run(connection, "completed", seq=1)
    active = await put_run(connection, "running", seq=11)
    await put_series(connection, "quiet", "a", T0, stale=True)
    await fill(connection, 12)
    await end_log(connection)
    bounds = vars(await read_bounds(connection, short))
    frozen, writer = await sessions("frozen"), await sessions("writer")
    async with frozen.transaction():
        for name, *keys in (("delete_actions", "", str(old)), ("delete_series", "quiet", "a")):
            parameters = {**bounds, "key_1": [keys[0]], "key_2": [keys[1]]}
            removed = await frozen.execute(statement(f"clock.retention/{name}"), parameters)
            assert removed.rowcount == 1
        await writer.execute("set lock_timeout = '5s'")
        await writer.execute("update tocsin.action set version = 2 where id = %s", (active,))
        await append_step(writer, active)
        await put_series(writer, "other", "a", NOW)


async def test_it_rests_after_each_chunk_also_after_one_without_deletions(
    connection: Connection, short: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        await put_series(connection, "young", f"{number}", NOW)
    rests: list[float] = []

    async def rest(seconds: float) -> None:
        rests.append(seconds)

    monkeypatch.setattr("clock.retention.rows.asyncio.sleep", rest)
    kind = next(kind for kind in ROW_KINDS if kind.table == "current_value")
    bounds = await read_bounds(connection, short)
    assert await remove_rows(connection, kind, bounds, chunk=2, rest_factor=1.0) == 0
    # Two full chunks, and an empty one that ends the walk.
    assert [seconds > 0 for seconds in rests] == [True, True, True]


async def test_a_second_run_at_the_same_time_is_rejected(
    connection: Connection, short: Settings, sessions: Sessions
) -> None:
    other = await sessions("other")
    await other.execute("select tocsin.claim_prune()")
    with pytest.raises(Refused, match="another prune is running"):
        await prune(connection, short)
    await other.execute("select tocsin.release_prune()")
    await prune(connection, short)
    await prune(connection, short)


async def test_a_locked_log_costs_only_the_log_pruned_event(
    connection: Connection, short: Settings, sessions: Sessions
) -> None:
    await begin_log(connection)
    await put_alarm(connection, "gone")
    await fill(connection, 12)
    await end_log(connection)
    other = await sessions("other")
    async with other.transaction():
        await other.execute("select tocsin.lock_log()")
        done = await prune(connection, short)
    assert done.rows == {"alarm": 1}
    assert [item.what for item in done.left] == ["the event log-pruned"]
    report = await read_prune_report(connection)
    assert (report.ended_at, report.running) == (NOW, False)


async def test_a_report_shows_whether_a_run_is_running_interrupted_or_failed(
    connection: Connection, short: Settings, sessions: Sessions
) -> None:
    await begin_log(connection)
    await fill(connection, 12)
    await end_log(connection)
    victim, other = await sessions("victim"), await sessions("other")
    seen: list[PruneReport] = []

    def kill(_table: str, _rows: int) -> None:
        with psycopg.connect(short.postgres, autocommit=True) as killer:
            row = killer.execute(statement("clock.retention/read_report")).fetchone()
            assert row is not None
            seen.append(PruneReport(*row))
            killer.execute("select pg_terminate_backend(%s, 5000)", (victim.info.backend_pid,))

    with pytest.raises(psycopg.OperationalError):
        await prune(victim, short, kill)
    assert (seen[0].running, seen[0].ended_at) == (True, None)
    report = await read_prune_report(connection)
    assert (report.running, report.ended_at, report.left) == (False, None, [])
    async with other.transaction():
        await other.execute("lock table tocsin.log_head")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            await prune(connection, short)
    report = await read_prune_report(connection)
    assert (report.running, report.ended_at is not None) == (False, True)
    assert [item["what"] for item in report.left] == ["the rest of the run"]
    assert report.left[0]["why"].startswith("it failed: canceling statement due to lock timeout")


async def test_an_unreadable_row_does_not_stop_the_pruning_of_other_tables(
    connection: Connection, short: Settings
) -> None:
    await begin_log(connection)
    await end_log(connection)
    await connection.execute("insert into tocsin.lane_partition (lane, partition) values ('data', 0)")
    await put_rule_state(connection, "hot", "broken", lane="record", last_opened_at="never")
    await put_series(connection, "quiet", "a", NOW - 400 * DAY)
    done = await prune(connection, short)
    assert done.rows == {"current_value": 1}
    (left,) = done.left
    assert (left.what, left.why.startswith("it failed: invalid input syntax")) == ("rule_state", True)
