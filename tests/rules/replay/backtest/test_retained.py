"""I5 within retention: pruning keeps everything that a window within it needs."""

from __future__ import annotations

from datetime import timedelta

from clock.retention.prune import prune
from tests.clock.clock_setup import at
from tests.clock.retention.old_log import fill
from tests.core.log_partitions import small_partitions
from tests.rules.alarms.alarm_batches import virtual_now
from tests.rules.apply.apply_setup import put
from tests.rules.replay.backtest.recorded_instance import RecordedInstance, replayed
from tests.rules.replay.backtest.series_rules import HOT, QUIET, TYPE
from tests.sessions import Sessions
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


async def test_a_window_within_retention_replays_alike_after_older_records_were_pruned(
    settings: Settings, connection: Connection, sessions: Sessions
) -> None:
    """With rules from before the horizon, an alarm that is open across it, and one on each side of it."""
    day = 86_400.0
    await small_partitions(connection, 8)
    await virtual_now(connection, at(0))
    for text in (TYPE.format("8s") + HOT, TYPE.format("4s") + HOT, TYPE.format("4s") + HOT + QUIET):
        await put(connection, text)
    # The lane begins after the rules, so no cutover names them.
    live = RecordedInstance(settings, sessions)
    await live.begin()
    for second, value, owner in ((10, 71.0, "plant-1"), (10, 71.0, "plant-2"), (12, 50.0, "plant-2")):
        await live.arrive([live.arrival(second, value, "dsp.a", owner)])
        await connection.execute("select tocsin.extend_log()")
    await live.settle(30)
    await fill(connection, 8, at=timedelta(minutes=1))
    await live.set_time(20 * day)
    await live.arrive([live.arrival(20 * day + 1, 71.0, "dsp.a", "plant-3")])
    await live.arrive([live.arrival(20 * day + 60, 50.0, "dsp.a", "plant-1")])
    await live.settle(20 * day + 200)
    before = await replayed(settings, at(20 * day - 600), at(20 * day + 200))
    assert not before[1].mismatches
    assert len(before[1].replayed_transitions) >= 4
    await connection.execute("update tocsin.cdc_report set last_seq = 1000")
    await connection.execute(
        "insert into tocsin.lane_partition (lane, partition, last_seq) values ('record', 0, 1000)"
    )
    short = settings.model_copy(
        update={"record_retention_d": 10, "datapoint_retention_d": 10, "keep_events_per_rule": 0}
    )
    await virtual_now(connection, at(20 * day + 300))
    done = await prune(connection, short)
    assert {"alarm", "rule_version"} <= done.rows.keys()
    header, after = await replayed(settings, at(20 * day - 600), at(20 * day + 200))
    assert not header.is_whole
    assert not after.mismatches, "\n".join(map(str, after.mismatches))
    assert (after.replayed_transitions, after.recorded_transitions, after.replayed_staleness) == (
        before[1].replayed_transitions,
        before[1].recorded_transitions,
        before[1].replayed_staleness,
    )


async def test_a_window_at_the_limit_of_retention_begins_with_the_series_that_were_stale_before(
    settings: Settings, connection: Connection, sessions: Sessions
) -> None:
    """The warm-up would begin in a day that is pruned. Its last datapoints are kept."""
    midnight = 16 * 3600.0
    await virtual_now(connection, at(0))
    await put(connection, TYPE.format("16m") + HOT + QUIET)
    live = RecordedInstance(settings, sessions)
    await live.begin()
    for seconds, value, owner in (
        (-7200, 50.0, "plant-1"),
        (-1200, 50.0, "plant-1"),
        (-1200, 71.0, "plant-2"),
        (300, 50.0, "plant-2"),
    ):
        await live.set_time(midnight + seconds)
        await live.arrive([live.arrival(midnight + seconds, value, "dsp.a", owner)])
    await live.set_time(midnight + 10_000)
    await live.settle(midnight + 10_000)
    window = at(midnight + 600), at(midnight + 10_000)
    before = await replayed(settings, *window)
    assert not before[1].mismatches
    assert len(before[1].replayed_transitions) == 2
    await virtual_now(connection, at(midnight + 11 * 86_400))
    await connection.execute("update tocsin.lane_partition set watermark = tocsin.instant()")
    done = await prune(connection, settings.model_copy(update={"datapoint_retention_d": 10.5}))
    assert done.tables == ["datapoint_20260302"]
    header, after = await replayed(settings, *window)
    assert header.start == at(midnight)
    assert not after.mismatches, "\n".join(map(str, after.mismatches))
    assert (after.replayed_transitions, after.recorded_transitions, after.replayed_staleness) == (
        before[1].replayed_transitions,
        before[1].recorded_transitions,
        before[1].replayed_staleness,
    )
    assert not (await replayed(settings, at(-86_400), window[1]))[0].is_whole
