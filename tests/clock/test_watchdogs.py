"""A series without a datapoint until its deadline becomes stale once, at that deadline."""

from __future__ import annotations

import pytest

from clock.term import Term, begin_term
from schemas.wire.datapoint import check_datapoint
from schemas.wire.subjects import calculated_subject, event_subject
from tests.clock.alarms import ALARM, alarm_row, arm_sustain, hold_alarm, read_until, timers
from tests.clock.clock_setup import at, drain
from tests.clock.series import KEY, calculated_datapoints, put_series, series_row, watch_series
from tests.sessions import Sessions
from tests.sql import all_rows
from timers.identity import staleness_id
from tocsin.core.db import Connection
from tocsin.core.errors import Deposed, InvalidInput


@pytest.fixture
async def term(connection: Connection) -> Term:
    await connection.execute("select set_config('tocsin.now', %s, false)", (at(0).isoformat(),))
    await read_until(connection, at(60))
    return await begin_term(connection, "test")


async def fire(term: Term, seconds: float) -> int:
    return sum(batch.fires for batch in await drain(term, at(seconds)))


async def test_a_deadline_that_passes_makes_the_series_stale(connection: Connection, term: Term) -> None:
    await put_series(connection, at(0))
    await watch_series(connection, at(10))
    assert await fire(term, 9.9) == 0
    assert await fire(term, 40) == 1
    row = await series_row(connection)
    assert (row["freshness"], row["stale_since"], row["value"]) == ("stale", at(10), 71.2)
    assert (row["handled_stale_since"], row["version"]) == (None, 2)
    (datapoint,) = await calculated_datapoints(connection)
    assert (datapoint["owner"], datapoint["key"], datapoint["kind"], datapoint["ts"]) == (
        "plant-7",
        KEY,
        "stale",
        at(10),
    )
    assert datapoint["id"] == staleness_id("stale", "plant-7", KEY, at(10))
    assert (datapoint["payload"]["value"], datapoint["payload"]["age_s"]) == (71.2, 10)
    assert datapoint["epoch"] == term.epoch
    assert await timers(connection) == []


async def test_an_arrival_touches_no_timer_and_the_watchdog_moves_itself(
    connection: Connection, term: Term
) -> None:
    await put_series(connection, at(0))
    await watch_series(connection, at(10))
    await put_series(connection, at(7))
    assert await fire(term, 10) == 0
    (timer,) = await timers(connection)
    assert (timer["fire_at"], timer["nominal_at"]) == (at(17), at(17))
    assert await calculated_datapoints(connection) == []
    assert await fire(term, 16.9) == 0
    assert await fire(term, 17) == 1
    assert (await series_row(connection))["stale_since"] == at(17)


async def test_a_watchdog_that_moves_to_a_deadline_that_has_passed_fires_at_once(
    connection: Connection, term: Term
) -> None:
    await put_series(connection, at(0))
    await watch_series(connection, at(10))
    await put_series(connection, at(7))
    assert await fire(term, 30) == 1
    assert (await series_row(connection))["stale_since"] == at(17)


async def test_an_outage_of_the_workers_makes_no_series_stale(connection: Connection, term: Term) -> None:
    """No worker read for an hour, so a datapoint may have arrived that is not stored yet."""
    await read_until(connection, at(5))
    await put_series(connection, at(0))
    await watch_series(connection, at(10))
    assert await fire(term, 3600) == 0
    assert (await series_row(connection))["freshness"] == "fresh"
    await put_series(connection, at(3595))
    await read_until(connection, at(3600))
    assert await fire(term, 3601) == 0
    (timer,) = await timers(connection)
    assert timer["nominal_at"] == at(3605)


async def test_a_gap_before_the_deadline_moves_the_watchdog(connection: Connection, term: Term) -> None:
    """The gap is recorded together with the watermark that passes it: until then the watchdog is held."""
    await put_series(connection, at(0))
    await watch_series(connection, at(10))
    await read_until(connection, at(8))
    assert await fire(term, 30) == 0
    await connection.execute("select set_config('tocsin.now', %s, false)", (at(30).isoformat(),))
    (held,) = await all_rows(connection, "select key, nominal_at from tocsin.held_timer")
    assert (held["key"], held["nominal_at"]) == (KEY, at(10))
    await read_until(connection, at(30))
    await record_gap(connection, 8, 30)
    assert await fire(term, 31) == 0
    (timer,) = await timers(connection)
    assert timer["nominal_at"] == at(40)
    await read_until(connection, at(44))
    await record_gap(connection, 36, 39)
    assert await fire(term, 44) == 1
    assert (await series_row(connection))["stale_since"] == at(43)


async def test_a_gap_of_another_partition_or_after_the_deadline_changes_nothing(
    connection: Connection, term: Term
) -> None:
    await read_until(connection, at(60), partition=1)
    await put_series(connection, at(0))
    await watch_series(connection, at(10))
    await record_gap(connection, 8, 30, partition=1)
    await record_gap(connection, 10, 30)
    assert await fire(term, 60) == 1
    assert (await series_row(connection))["stale_since"] == at(10)


async def record_gap(connection: Connection, began: float, ended: float, partition: int = 0) -> None:
    await connection.execute(
        "insert into tocsin.arrival_gap values (%s, %s, %s)", (partition, at(began), at(ended))
    )
    await connection.execute(
        "update tocsin.lane_partition set last_gap_at = %s where partition = %s", (at(began), partition)
    )


async def test_a_partition_that_was_never_read_holds_its_series(connection: Connection, term: Term) -> None:
    await read_until(connection, None)
    await put_series(connection, at(0))
    await watch_series(connection, at(10))
    assert await fire(term, 100) == 0
    await read_until(connection, at(10))
    assert await fire(term, 101) == 1


async def test_a_watchdog_of_a_series_that_is_being_written_is_held(
    connection: Connection, term: Term, sessions: Sessions
) -> None:
    await put_series(connection, at(0))
    await watch_series(connection, at(10))
    worker = await sessions("worker")
    async with worker.transaction():
        await put_series(worker, at(9))
        assert await fire(term, 11) == 0
        assert await calculated_datapoints(connection) == []
    assert await fire(term, 12) == 0
    (timer,) = await timers(connection)
    assert timer["nominal_at"] == at(19)


async def test_a_watchdog_of_a_stale_or_missing_series_is_consumed(
    connection: Connection, term: Term
) -> None:
    await watch_series(connection, at(10), key="gone")
    await put_series(connection, at(0))
    await connection.execute(
        "update tocsin.current_value set freshness = 'stale', stale_since = %s", (at(3),)
    )
    await watch_series(connection, at(10))
    assert await fire(term, 20) == 0
    assert await timers(connection) == []
    assert await calculated_datapoints(connection) == []


async def test_owners_of_any_spelling_are_watched(connection: Connection, term: Term) -> None:
    for owner in ("", "_", "plant 7", "größe.*>"):
        await put_series(connection, at(0), owner=owner)
        await watch_series(connection, at(10), owner=owner)
    assert await fire(term, 10) == 4
    assert {datapoint["owner"] for datapoint in await calculated_datapoints(connection)} == {
        "",
        "_",
        "plant 7",
        "größe.*>",
    }


async def test_a_deposed_clock_makes_nothing_stale(
    connection: Connection, term: Term, sessions: Sessions
) -> None:
    await put_series(connection, at(0))
    await watch_series(connection, at(10))
    await connection.execute("update tocsin.log_head set holder_pid = null")
    await begin_term(await sessions("successor"), "successor")
    with pytest.raises(Deposed):
        await fire(term, 10)
    assert (await series_row(connection))["freshness"] == "fresh"
    assert len(await timers(connection)) == 1


async def test_a_sustain_waits_for_an_earlier_staleness_deadline(connection: Connection, term: Term) -> None:
    """`no_data: resolve` at 8 s would end the alarm, so the rules process the staleness first."""
    await put_series(connection, at(-2))
    await watch_series(connection, at(8))
    await hold_alarm(connection)
    await arm_sustain(connection, "open", at(10), {})
    await drain(term, at(11))
    assert (await series_row(connection))["stale_since"] == at(8)
    assert (await alarm_row(connection))["state"] == "pending"
    await drain(term, at(12))
    assert (await alarm_row(connection))["state"] == "pending", "no rule has processed the staleness yet"
    await connection.execute("update tocsin.current_value set handled_stale_since = stale_since")
    await drain(term, at(13))
    assert (await alarm_row(connection))["state"] == "open"
    assert (await alarm_row(connection))["id"] == ALARM


async def test_a_sustain_waits_for_an_earlier_staleness_deadline_however_late_its_watchdog_was_armed(
    connection: Connection, term: Term
) -> None:
    """In a backlog the watchdog is armed after its deadline. Its deadline is still 8 s."""
    await put_series(connection, at(-2))
    await connection.execute("select set_config('tocsin.now', %s, false)", (at(40).isoformat(),))
    await watch_series(connection, at(8))
    await hold_alarm(connection)
    await connection.execute("select set_config('tocsin.now', %s, false)", (at(0).isoformat(),))
    await arm_sustain(connection, "open", at(10), {})
    await drain(term, at(11))
    assert (await alarm_row(connection))["state"] == "pending"
    await drain(term, at(40))
    assert (await series_row(connection))["stale_since"] == at(8)


async def test_a_parked_watchdog_holds_no_sustain(connection: Connection, term: Term) -> None:
    """It waits for an operator. Until then the alarms of its owner do not wait."""
    await put_series(connection, at(-2))
    await watch_series(connection, at(8))
    await connection.execute("update tocsin.timer set parked_at = %s", (at(0),))
    await hold_alarm(connection)
    await arm_sustain(connection, "open", at(10), {})
    await drain(term, at(11))
    assert (await alarm_row(connection))["state"] == "open"


async def test_a_later_staleness_deadline_or_one_of_another_owner_holds_no_sustain(
    connection: Connection, term: Term
) -> None:
    await put_series(connection, at(2))
    await watch_series(connection, at(12))
    await put_series(connection, at(-2), owner="other")
    await watch_series(connection, at(8), owner="other")
    await hold_alarm(connection)
    await arm_sustain(connection, "open", at(10), {})
    await drain(term, at(11))
    assert (await alarm_row(connection))["state"] == "open"


@pytest.mark.parametrize(("owner", "key"), [("漢" * 128, "漢" * 170), ("😀" * 128, "😀" * 128)])
async def test_a_series_with_a_long_name_outside_of_ascii_is_watched_and_its_subject_fits(
    connection: Connection, term: Term, owner: str, key: str
) -> None:
    """A byte outside of ASCII has three characters in a token, and a line of NATS has 4,096 bytes."""
    check_datapoint(owner, {"key": key, "value": 1.0})
    await put_series(connection, at(0), owner=owner, key=key)
    await watch_series(connection, at(10), owner=owner, key=key)
    assert await fire(term, 40) == 1
    (datapoint,) = await calculated_datapoints(connection)
    assert (datapoint["owner"], datapoint["key"]) == (owner, key)
    assert len(calculated_subject("tocsin-with-a-long-namespace", "stale", owner, key)) < 3584
    assert len(event_subject("tocsin-with-a-long-namespace", "scheduled", "t" * 128, owner, owner)) < 3584


@pytest.mark.parametrize("key", ["漢" * 171, "😀" * 129, "ü" * 255 + "x"])
def test_a_key_whose_subject_would_not_fit_is_rejected_before_it_is_sent(key: str) -> None:
    with pytest.raises(InvalidInput, match="is too long"):
        check_datapoint("plant-7", {"key": key, "value": 1.0})
