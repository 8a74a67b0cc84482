"""Metrics of the database: read in bounded time."""

from __future__ import annotations

import uuid

import pytest

from clock.term import begin_term
from rules.lanes.arrival_gap import ArrivalGap, record_gaps
from tests.clock.alarms import arm_sustain, hold_alarm, read_until
from tests.clock.clock_setup import BEAT, at, drain, put
from tests.clock.series import put_series, watch_series
from tests.metrics.scrapes import Samples
from timers.working_set import arm
from tocsin.core.db import Connection, statement
from tocsin.core.metrics import format_metrics
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.metrics.database_metrics import read_database_metrics, set_session_timeout

_DATA_0 = {"lane": "data", "partition": "0"}


async def read_samples(connection: Connection) -> Samples:
    return Samples(format_metrics([await read_database_metrics(connection)]))


async def now(connection: Connection, seconds: float) -> None:
    await connection.execute("select set_config('tocsin.now', %s, false)", (at(seconds).isoformat(),))


async def test_held_timers_are_counted_by_kind_and_partition_until_the_watermark_passes(
    connection: Connection,
) -> None:
    await now(connection, 0)
    await read_until(connection, at(5))
    await read_until(connection, at(5), partition=1)
    for number in range(3):
        await put_series(connection, at(0), owner=f"plant-{number}")
        await watch_series(connection, at(10), owner=f"plant-{number}")
    await hold_alarm(connection)
    await arm_sustain(connection, "open", at(11), {})
    term = await begin_term(connection, "test")
    await now(connection, 16)
    await drain(term, at(16))
    samples = await read_samples(connection)
    assert samples("tocsin_timers_held", kind="watchdog", **_DATA_0) == 3
    assert samples("tocsin_timers_held_seconds", kind="watchdog", **_DATA_0) == 6
    assert samples("tocsin_timers_held", kind="for-sustain", **_DATA_0) == 1
    assert samples("tocsin_timers_held_seconds", kind="for-sustain", **_DATA_0) == 5
    assert samples("tocsin_timers_held", kind="watchdog", lane="data", partition="1") == 0
    assert samples("tocsin_lane_behind_seconds", **_DATA_0) == 11
    await now(connection, 20)
    await read_until(connection, at(20))
    await drain(term, at(20))
    samples = await read_samples(connection)
    for kind in ("watchdog", "for-sustain"):
        assert samples("tocsin_timers_held", kind=kind, **_DATA_0) == 0
        assert samples("tocsin_timers_held_seconds", kind=kind, **_DATA_0) == 0
    assert samples("tocsin_series_stale") == 3
    assert samples("tocsin_lane_behind_seconds", **_DATA_0) == 0
    assert samples("tocsin_alarms_open", severity="high") == 1
    assert samples("tocsin_alarms_open", severity="info") == 0


async def test_failing_canaries_and_recent_gaps_are_counted(connection: Connection) -> None:
    await now(connection, 3700)
    await read_until(connection, at(5))
    await read_until(connection, at(5), partition=1)
    await connection.execute("update tocsin.lane_partition set canary_error = 'timeout' where partition = 1")
    for ended in (50, 120, 3600):
        gap = ArrivalGap(at(ended - 10), at(ended))
        await record_gaps(connection, 0, [gap])
    samples = await read_samples(connection)
    assert samples("tocsin_canary_failing", partition="0") == 0
    assert samples("tocsin_canary_failing", partition="1") == 1
    assert samples("tocsin_arrival_gaps") == 2, "one ended more than an hour ago"


async def test_timers_are_armed_due_overdue_or_parked(connection: Connection) -> None:
    await now(connection, 0)
    await put(connection, BEAT)
    await arm(connection, "runbook-wait", str(uuid.uuid4()), "0", at(5), {})
    await arm(connection, "runbook-wait", str(uuid.uuid4()), "0", at(7), {})
    await arm(connection, "runbook-wait", str(uuid.uuid4()), "0", at(100), {})
    await arm(connection, "runbook-wait", "broken", "0", at(1), {})
    await connection.execute("update tocsin.timer set parked_at = %s where ref = 'broken'", (at(2),))
    await now(connection, 9)
    samples = await read_samples(connection)
    assert samples("tocsin_timers_armed", kind="schedule-tick") == 1
    assert samples("tocsin_timers_armed", kind="runbook-wait") == 1
    assert samples("tocsin_timers_due", kind="runbook-wait") == 2
    assert samples("tocsin_timers_overdue_seconds", kind="runbook-wait") == 4
    assert samples("tocsin_timers_overdue_seconds", kind="schedule-tick") == 0
    assert samples("tocsin_timers_parked", kind="runbook-wait") == 1
    assert samples("tocsin_timers_parked", kind="watchdog") == 0


async def test_beyond_ten_thousand_armed_timers_are_estimated(connection: Connection) -> None:
    await now(connection, 0)
    await connection.execute(
        "insert into tocsin.timer (kind, ref, fire_at, nominal_at)"
        " select case when n <= 30000 then 'watchdog' else 'runbook-wait' end, n::text, %(at)s, %(at)s"
        " from generate_series(1, 39000) n",
        {"at": at(1000)},
    )
    assert (await read_samples(connection))("tocsin_timers_armed", kind="watchdog") == 10_000
    await connection.execute("analyze tocsin.timer")
    samples = await read_samples(connection)
    assert 27_000 < samples("tocsin_timers_armed", kind="watchdog") < 33_000
    assert samples("tocsin_timers_armed", kind="runbook-wait") == 9_000


async def test_the_lag_of_the_log_is_counted_from_the_last_published_record(connection: Connection) -> None:
    for second in (0, 1, 2):
        await now(connection, second)
        await append_events(connection, [NewEvent(at(second), "caused", "noted")])
    await now(connection, 10)
    samples = await read_samples(connection)
    assert (samples("tocsin_log_head_seq"), samples("tocsin_log_published_seq")) == (3, 0)
    assert samples("tocsin_log_publish_lag_seconds") == 10
    await connection.execute("update tocsin.cdc_report set last_seq = 1, at = %s", (at(9),))
    assert (await read_samples(connection))("tocsin_log_publish_lag_seconds") == 9
    await connection.execute(
        "insert into tocsin.lane_partition (lane, partition, last_seq) values ('record', 0, 3)"
    )
    samples = await read_samples(connection)
    assert (samples("tocsin_log_published_seq"), samples("tocsin_log_publish_lag_seconds")) == (3, 0)
    assert samples("tocsin_lane_last_seq", lane="record", partition="0") == 3
    assert samples.get("tocsin_lane_behind_seconds", lane="record", partition="0") is None, (
        "never complete yet"
    )
    assert samples("tocsin_stream_problem") == 0
    await connection.execute("update tocsin.cdc_report set problem = 'diverged', since = %s", (at(9),))
    assert (await read_samples(connection))("tocsin_stream_problem") == 1


async def test_actions_and_workers_are_counted(connection: Connection) -> None:
    for state in ("running", "running", "failed", "completed"):
        await connection.execute(
            "insert into tocsin.action (id, action_rule, name, state, event_id, event_seq, started_at, correlation_id,"
            " document) values (gen_random_uuid(), 'r', 'n', %s, gen_random_uuid(), 1, %s, gen_random_uuid(), '{}')",
            (state, at(0)),
        )
    await now(connection, 0)
    for holder, until in (("a", at(1)), ("b", at(-1))):
        await connection.execute(
            "insert into tocsin.lane_worker values (%s, %s, %s)", (holder, until, at(-9))
        )
    await connection.execute(
        "insert into tocsin.lane_partition (lane, partition, holder, held_until) values ('data', 0, 'a', %s),"
        " ('data', 1, 'b', %s)",
        (at(1), at(-1)),
    )
    samples = await read_samples(connection)
    assert samples("tocsin_actions", state="running") == 2
    assert samples("tocsin_actions", state="failed") == 1
    assert samples("tocsin_actions", state="queued") == 0
    assert samples.get("tocsin_actions", state="completed") is None
    assert samples("tocsin_workers") == 1
    assert samples("tocsin_lane_has_worker", **_DATA_0) == 1
    assert samples("tocsin_lane_has_worker", lane="data", partition="1") == 0


@pytest.mark.parametrize("figures_of", ["timers", "parked", "held", "alarms", "actions", "stale"])
async def test_rows_that_exist_in_millions_are_found_by_an_index(
    connection: Connection, figures_of: str
) -> None:
    await set_session_timeout(connection)
    plan = await (
        await connection.execute(b"explain " + statement(f"tocsin.metrics/count_{figures_of}"))
    ).fetchall()
    scanned = {line.strip() for (line,) in plan if "Seq Scan on" in line and " pg_" not in line}
    assert scanned == set()
