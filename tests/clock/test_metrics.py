"""Metrics of a clock: fires by kind and outcome, counted after the commit, and their lateness."""

from __future__ import annotations

from clock.metrics import CLOCK
from clock.term import begin_term
from tests.clock.alarms import arm_sustain, hold_alarm, read_until
from tests.clock.clock_setup import BEAT, at, drain, put
from tests.clock.series import put_series, watch_series
from tests.metrics.scrapes import Counted
from tocsin.core.db import Connection


async def test_ticks_are_fired_missed_or_failed(connection: Connection) -> None:
    await put(connection, BEAT)
    await put(connection, BEAT, name="missed", catch_up="none")
    await put(connection, BEAT, name="spoiled")
    await connection.execute("update tocsin.schedule set recurrence = '{}' where name = 'spoiled'")
    counted = Counted(CLOCK)
    term = await begin_term(connection, "test")
    await drain(term, at(104))
    kind = {"kind": "schedule-tick"}
    assert counted("tocsin_fires_total", outcome="fired", **kind) == 1
    assert counted("tocsin_fires_total", outcome="missed", **kind) == 2, (
        "each schedule records its misses once"
    )
    assert counted("tocsin_fires_total", outcome="failed", **kind) == 1
    assert counted("tocsin_timers_processed_total", **kind) == 2
    assert counted("tocsin_fire_lateness_seconds_count", **kind) == 1
    assert counted("tocsin_fire_batch_seconds_count", **kind) == 1


async def test_lateness_is_measured_at_the_commit(connection: Connection) -> None:
    await put(connection, BEAT)
    term = await begin_term(connection, "test")
    counted = Counted(CLOCK)
    await drain(term, at(14))
    kind = {"kind": "schedule-tick"}
    assert counted("tocsin_fire_lateness_seconds_bucket", le="2.5", **kind) == 0
    assert counted("tocsin_fire_lateness_seconds_bucket", le="60", **kind) == 1
    assert 4 < counted("tocsin_fire_lateness_seconds_sum", **kind) < 60, (
        "due at 10, begun at 14, and committed"
    )


async def test_a_timer_that_fails_in_postgres_is_counted_once(connection: Connection) -> None:
    await connection.execute("alter table tocsin.schedule drop constraint schedule_payload_check")
    await put(connection, BEAT)
    await put(connection, BEAT, name="large")
    await connection.execute(
        "update tocsin.schedule set payload = to_jsonb(repeat('x', 300000)) where name = 'large'"
    )
    counted = Counted(CLOCK)
    await drain(await begin_term(connection, "test"), at(10))
    assert counted("tocsin_fires_total", kind="schedule-tick", outcome="failed") == 1
    assert counted("tocsin_fires_total", kind="schedule-tick", outcome="fired") == 1


async def test_a_watchdog_that_moves_itself_is_counted_as_processed_and_not_as_fired(
    connection: Connection,
) -> None:
    await connection.execute("select set_config('tocsin.now', %s, false)", (at(0).isoformat(),))
    await read_until(connection, at(60))
    for owner, arrived_at in (("stale", at(0)), ("fresh", at(5))):
        await put_series(connection, arrived_at, owner=owner)
        await watch_series(connection, at(10), owner=owner)
    await hold_alarm(connection)
    await arm_sustain(connection, "open", at(10), {})
    counted = Counted(CLOCK)
    await drain(await begin_term(connection, "test"), at(11))
    assert counted("tocsin_timers_processed_total", kind="watchdog") == 2
    assert counted("tocsin_fires_total", kind="watchdog", outcome="fired") == 1
    assert counted("tocsin_fire_lateness_seconds_count", kind="watchdog") == 1


async def test_a_held_sustain_is_counted_when_it_fires(connection: Connection) -> None:
    await connection.execute("select set_config('tocsin.now', %s, false)", (at(0).isoformat(),))
    await read_until(connection, at(0))
    await hold_alarm(connection)
    await arm_sustain(connection, "open", at(10), {})
    counted = Counted(CLOCK)
    term = await begin_term(connection, "test")
    await drain(term, at(11))
    assert counted("tocsin_timers_processed_total", kind="for-sustain") == 0
    await read_until(connection, at(60))
    await drain(term, at(14))
    assert counted("tocsin_fires_total", kind="for-sustain", outcome="fired") == 1
    assert counted("tocsin_fire_lateness_seconds_bucket", kind="for-sustain", le="2.5") == 0
    assert counted("tocsin_fire_lateness_seconds_count", kind="for-sustain") == 1
