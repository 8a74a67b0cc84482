"""A new tz database moves the ticks it concerns, and nothing that is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from clock.term import Term, begin_term
from tests.records import events
from tests.sessions import Sessions
from tests.timers.tz_releases import fetch_release, using
from tests.timers.tz_setup import apply_tz_data
from timers import tz_update
from timers.recurrence import Recurrence, parse_spec
from timers.schedule_spec import ScheduleSpec
from timers.schedules import find_schedule, pause_schedule, put_schedule, resume_schedule
from timers.tz_update import TzUpdate
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.errors import Refused
from tocsin.core.sql_errors import DEPOSED

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
ACTOR = Actor("tester", "test", T0)
HOUR = timedelta(hours=1)


async def pretend_the_zone_was_an_hour_ahead(connection: Connection) -> None:
    """Move ticks an hour back, as an older tz database would have computed them."""
    await connection.execute(
        "update tocsin.timer set fire_at = fire_at - interval '1 hour', nominal_at = nominal_at - interval '1 hour'"
    )


async def nominal(connection: Connection, name: str) -> datetime:
    row = await find_schedule(connection, "", name)
    assert row is not None
    at: datetime = row["nominal_at"]
    return at


@pytest.mark.parametrize(
    ("recurrence", "moves"),
    [
        ({"cron": "0 9 * * *", "tz": "America/Vancouver"}, True),
        ({"at": "2026-06-01T09:00:00", "tz": "America/Vancouver"}, True),
        ({"every": "1d", "tz": "America/Vancouver"}, False),
        ({"at": "2026-06-01T09:00:00Z", "tz": "America/Vancouver"}, False),
        ({"cron": "0 9 * * *", "tz": "UTC"}, False),
    ],
)
async def test_only_schedules_that_depend_on_a_zone_are_computed_again(
    connection: Connection, recurrence: dict[str, str], moves: bool
) -> None:
    await apply_tz_data(connection, "2000a")
    await put_schedule(connection, ScheduleSpec("s", recurrence), ACTOR)
    right = await nominal(connection, "s")
    await pretend_the_zone_was_an_hour_ahead(connection)
    assert await apply_tz_data(connection, "2000b") == (1 if moves else 0)
    assert await nominal(connection, "s") == (right if moves else right - HOUR)


async def test_the_same_version_is_applied_once(connection: Connection) -> None:
    await put_schedule(connection, ScheduleSpec("s", {"cron": "0 9 * * *", "tz": "Europe/London"}), ACTOR)
    await apply_tz_data(connection, "2000b")
    await pretend_the_zone_was_an_hour_ahead(connection)
    assert await apply_tz_data(connection, "2000b") == 0
    assert await apply_tz_data(connection, "2000c") == 1


async def test_a_new_database_has_nothing_to_compare_with(connection: Connection) -> None:
    await put_schedule(connection, ScheduleSpec("s", {"cron": "0 9 * * *", "tz": "Europe/London"}), ACTOR)
    await pretend_the_zone_was_an_hour_ahead(connection)
    before = await nominal(connection, "s")
    assert await apply_tz_data(connection, "2000b") == 0
    assert await nominal(connection, "s") == before


async def test_many_schedules_are_computed_outside_the_transaction(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await apply_tz_data(connection, "2000a")
    await put_schedule(connection, ScheduleSpec("s", {"cron": "0 9 * * *", "tz": "Europe/London"}), ACTOR)
    await pretend_the_zone_was_an_hour_ahead(connection)
    states: list[TransactionStatus] = []

    def noting(spec: Mapping[str, object]) -> Recurrence:
        states.append(connection.info.transaction_status)
        return parse_spec(spec)

    monkeypatch.setattr("timers.tz_update.parse_spec", noting)
    assert await apply_tz_data(connection, "2000b") == 1
    assert states == [TransactionStatus.IDLE]


async def test_many_ticks_are_moved_in_chunks(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timers.tz_update._CHUNK", 2)
    await apply_tz_data(connection, "2000a")
    names = [f"s-{number}" for number in range(5)]
    for name in names:
        await put_schedule(
            connection, ScheduleSpec(name, {"cron": "0 9 * * *", "tz": "America/Vancouver"}), ACTOR
        )
    right = [await nominal(connection, name) for name in names]
    await pretend_the_zone_was_an_hour_ahead(connection)
    assert await apply_tz_data(connection, "2000b") == 5
    assert [await nominal(connection, name) for name in names] == right


async def test_a_tick_that_was_edited_meanwhile_is_left_alone(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await apply_tz_data(connection, "2000a")
    await put_schedule(connection, ScheduleSpec("s", {"cron": "0 9 * * *", "tz": "Europe/London"}), ACTOR)
    await pretend_the_zone_was_an_hour_ahead(connection)
    edited = ScheduleSpec("s", {"cron": "0 11 * * *", "tz": "Europe/London"})
    with monkeypatch.context() as patch:
        patch.setattr(
            tz_update, "_moves", _after(tz_update._moves, lambda: put_schedule(connection, edited, ACTOR))
        )
        assert not await TzUpdate(0, "2000b").update_ticks(connection), "it looks again"
    assert await TzUpdate(0, "2000b").update_ticks(connection)
    assert (await nominal(connection, "s")).hour == 11


def _after(
    first: Callable[[Connection], Awaitable[Any]], then: Callable[[], Awaitable[Any]]
) -> Callable[[Connection], Awaitable[Any]]:
    async def both(connection: Connection) -> Any:
        result = await first(connection)
        await then()
        return result

    return both


async def test_a_wall_time_that_is_done_does_not_fire_again(connection: Connection) -> None:
    await put_schedule(connection, ScheduleSpec("s", {"cron": "0 9 * * *", "tz": "Europe/London"}), ACTOR)
    first = await nominal(connection, "s")
    await apply_tz_data(connection, "2000a")
    term = await begin_term(connection, "test")
    await term.run_once(first)
    await apply_tz_data(connection, "2000b")
    assert await nominal(connection, "s") == first + timedelta(days=1)
    assert (await term.run_once(first + HOUR)).timers == 0
    assert len(await events(connection)) == 1


async def test_a_resumed_schedule_does_not_fire_what_lay_inside_its_pause(connection: Connection) -> None:
    """Fired on Monday, paused, resumed on Wednesday at noon: Thursday is next, whatever the data."""
    monday = datetime(2026, 3, 2, 7, 0, tzinfo=UTC)
    daily = ScheduleSpec("s", {"cron": "0 9 * * *", "tz": "Europe/Berlin"})
    await put_schedule(connection, daily, Actor("tester", "test", monday))
    await apply_tz_data(connection, "2000a")
    term = await begin_term(connection, "test")
    await term.run_once(monday + HOUR)
    await pause_schedule(connection, "", "s", Actor("tester", "test", monday + 2 * HOUR))
    wednesday_noon = monday + timedelta(days=2, hours=4)
    await resume_schedule(connection, "", "s", Actor("tester", "test", wednesday_noon))
    thursday = await nominal(connection, "s")
    update = TzUpdate(term.epoch, "2000b")
    assert await update.update_ticks(connection)
    assert (update.moved, await nominal(connection, "s")) == (0, thursday)
    assert thursday == monday + timedelta(days=3, hours=1)


class TestAZoneThatMovesWest:
    """Kazakhstan on 1 March 2024, +06 to +05, with data that came on 5 March."""

    FIRED_AT = datetime(2024, 3, 5, 3, 0, tzinfo=UTC)
    """09:00 by the old data. By the new data 09:00 is an hour later."""
    SPEC = ScheduleSpec("s", {"cron": "0 9 * * *", "tz": "Asia/Almaty"})

    @pytest.fixture
    async def term(self, connection: Connection) -> Term:
        with using(fetch_release("2023.4")):
            term = await begin_term(connection, "test")
            assert await TzUpdate(term.epoch).update_ticks(connection)
            await put_schedule(connection, self.SPEC, Actor("tester", "test", self.FIRED_AT - HOUR))
            await term.run_once(self.FIRED_AT)
        return term

    async def test_a_wall_time_that_is_done_does_not_fire_again(
        self, connection: Connection, term: Term
    ) -> None:
        with using(fetch_release("2024.1")):
            assert await TzUpdate(term.epoch).update_ticks(connection)
            assert (await term.run_once(self.FIRED_AT + HOUR)).fires == 0
            tomorrow = self.FIRED_AT + timedelta(days=1, hours=1)
            assert await nominal(connection, "s") == tomorrow
            assert (await term.run_once(tomorrow)).fires == 1

    async def test_a_tick_that_is_due_before_it_has_moved_waits_for_its_new_instant(
        self, connection: Connection, term: Term
    ) -> None:
        with using(fetch_release("2024.1")):
            by_old_data = self.FIRED_AT + timedelta(days=1)
            assert (await term.run_once(by_old_data)).fires == 0
            assert await nominal(connection, "s") == by_old_data + HOUR
            assert (await term.run_once(by_old_data + HOUR)).fires == 1

    @pytest.mark.parametrize("change", [replace(SPEC, payload={"k": 1}), replace(SPEC, grace=HOUR)])
    async def test_an_edit_does_not_repeat_it(
        self, connection: Connection, term: Term, change: ScheduleSpec
    ) -> None:
        with using(fetch_release("2024.1")):
            assert await TzUpdate(term.epoch).update_ticks(connection)
            later = Actor("tester", "test", self.FIRED_AT + HOUR / 2)
            edited = await put_schedule(connection, change, later)
            assert edited.next_at == self.FIRED_AT + timedelta(days=1, hours=1)

    @pytest.mark.parametrize("sql", [True, False])
    async def test_a_pause_or_a_cancel_does_not_forget_it(
        self, connection: Connection, term: Term, sql: bool
    ) -> None:
        later = Actor("tester", "test", self.FIRED_AT + HOUR / 2)
        if sql:
            await connection.execute("select tocsin.schedule_cancel('', 's')")
        else:
            await pause_schedule(connection, "", "s", later)
        with using(fetch_release("2024.1")):
            put = await put_schedule(connection, self.SPEC, later)
            assert put.next_at == self.FIRED_AT + timedelta(days=1, hours=1)

    async def test_another_zone_is_not_bound_by_it(self, connection: Connection, term: Term) -> None:
        elsewhere = replace(self.SPEC, recurrence={"cron": "0 7 * * *", "tz": "Europe/Berlin"})
        put = await put_schedule(connection, elsewhere, Actor("tester", "test", self.FIRED_AT))
        assert put.next_at == self.FIRED_AT + 3 * HOUR

    async def test_a_single_wall_time_is_over(self, connection: Connection, term: Term) -> None:
        once = ScheduleSpec("once", {"at": "2024-03-06T09:00:00", "tz": "Asia/Almaty"})
        due = self.FIRED_AT + timedelta(days=1)
        with using(fetch_release("2023.4")):
            await put_schedule(connection, once, Actor("tester", "test", self.FIRED_AT))
            await term.run_once(due)
        with using(fetch_release("2024.1")):
            again = replace(once, payload={"k": 1})
            with pytest.raises(Refused, match="would never fire again"):
                await put_schedule(connection, again, Actor("tester", "test", due + HOUR / 2))


@pytest.mark.parametrize(
    "damage",
    [
        """update tocsin.schedule set recurrence = '{"cron": "0 9 * * *", "tz": "US/Gone"}' where name = 'bad'""",
        """update tocsin.schedule set recurrence = '{"cron": 9, "tz": "Europe/Berlin"}' where name = 'bad'""",
        "update tocsin.timer t set ref = 'no id' from tocsin.schedule s where s.name = 'bad' and t.ref = s.id::text",
    ],
)
async def test_a_schedule_that_cannot_be_read_does_not_stop_the_others(
    connection: Connection, damage: str
) -> None:
    await apply_tz_data(connection, "2000a")
    for name in ("bad", "good"):
        await put_schedule(
            connection, ScheduleSpec(name, {"cron": "0 9 * * *", "tz": "Europe/Berlin"}), ACTOR
        )
    right = await nominal(connection, "good")
    await pretend_the_zone_was_an_hour_ahead(connection)
    await connection.execute(damage.encode())
    assert await apply_tz_data(connection, "2000b") == 1
    assert await nominal(connection, "good") == right


async def test_a_tick_that_another_transaction_holds_is_moved_later(
    connection: Connection, sessions: Sessions
) -> None:
    await apply_tz_data(connection, "2000a")
    for name in ("held", "free"):
        await put_schedule(
            connection, ScheduleSpec(name, {"cron": "0 9 * * *", "tz": "Europe/Berlin"}), ACTOR
        )
    right = await nominal(connection, "free")
    await pretend_the_zone_was_an_hour_ahead(connection)
    other = await sessions("other")
    update = TzUpdate(0, "2000b")
    async with other.transaction(force_rollback=True):
        await other.execute("select tocsin.schedule_cancel('', 'held')")
        assert not await update.update_ticks(connection)
        assert await nominal(connection, "free") == right
    assert await update.update_ticks(connection)
    assert await nominal(connection, "held") == right


async def test_an_edit_by_older_tz_data_is_refused(connection: Connection) -> None:
    await apply_tz_data(connection, "2999a")
    with pytest.raises(
        Refused, match=r"the tz data of this process .* is older than that of the clock \(2999a\)"
    ):
        await put_schedule(connection, ScheduleSpec("s", {"cron": "0 9 * * *", "tz": "Europe/Berlin"}), ACTOR)
    await put_schedule(connection, ScheduleSpec("s", {"cron": "0 9 * * *"}), ACTOR)


async def test_an_edit_that_is_open_during_an_update_is_computed_again(
    connection: Connection, sessions: Sessions
) -> None:
    """It was computed by the old data, and no clock could see its tick."""
    await apply_tz_data(connection, "2000a")
    other = await sessions("other")
    update = TzUpdate(0, "2000b")
    async with other.transaction():
        await put_schedule(other, ScheduleSpec("s", {"cron": "0 9 * * *", "tz": "Europe/Berlin"}), ACTOR)
        assert not await update.update_ticks(connection)
    right = await nominal(connection, "s")
    await pretend_the_zone_was_an_hour_ahead(connection)
    assert await update.update_ticks(connection)
    assert await nominal(connection, "s") == right


async def test_a_superseded_clock_moves_nothing(connection: Connection) -> None:
    await apply_tz_data(connection, "2000a")
    await put_schedule(connection, ScheduleSpec("s", {"cron": "0 9 * * *", "tz": "Europe/Berlin"}), ACTOR)
    await pretend_the_zone_was_an_hour_ahead(connection)
    before = await nominal(connection, "s")
    await begin_term(connection, "test")
    with pytest.raises(psycopg.Error) as refused:
        await TzUpdate(0, "2000b").update_ticks(connection)
    assert refused.value.sqlstate == DEPOSED
    assert await nominal(connection, "s") == before
