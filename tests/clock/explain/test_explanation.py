"""Explanations of schedules: the exact sentence of each outcome, from real records."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clock.schedule_commands import cancel, pause, resume
from clock.term import begin_term
from tests.clock.clock_setup import T0, at, schedule
from tests.clock.explain.explained_job import DAILY, DAY, DUE, acting_at, explain_job, fire, put, timer_of
from tocsin.core.db import Connection


async def test_a_fire_on_time_is_explained_as_fired(connection: Connection) -> None:
    await put(connection, DAILY)
    term = await begin_term(connection, "test")
    await fire(term, connection, DUE, timedelta(milliseconds=3))
    explanation = await explain_job(connection, DUE + timedelta(hours=1))
    assert explanation.outcome == "fired"
    assert explanation.sentence == (
        "fired at 2026-03-02 08:00:00 EST (13:00:00 UTC), seq 1, generation 1, 3 ms late"
    )
    assert explanation.facts["timer"] == await timer_of(connection)
    assert (explanation.facts["seq"], explanation.facts["late_ms"], explanation.facts["epoch"]) == (1, 3, 1)
    assert explanation == await explain_job(connection, DUE + 9 * DAY, DUE)


async def test_a_late_fire_is_explained_with_its_lateness(connection: Connection) -> None:
    await put(connection, DAILY, grace=timedelta(hours=2))
    term = await begin_term(connection, "test")
    await fire(term, connection, DUE + timedelta(minutes=65))
    explanation = await explain_job(connection, DUE + timedelta(hours=2))
    assert (explanation.outcome, explanation.facts["late_ms"]) == ("late", 3_900_000)
    assert explanation.sentence == (
        "fired at 2026-03-02 09:05:00 EST (14:05:00 UTC), 1h5m late: it was due at 2026-03-02 08:00:00 EST "
        "(13:00:00 UTC), seq 1, generation 1"
    )


@pytest.mark.parametrize(("late", "outcome"), [(1000, "fired"), (1001, "late")])
async def test_a_fire_is_late_when_it_is_more_than_a_second_late(
    connection: Connection, late: int, outcome: str
) -> None:
    await put(connection, DAILY)
    await fire(await begin_term(connection, "test"), connection, DUE, timedelta(milliseconds=late))
    assert (await explain_job(connection, DUE + DAY / 2)).outcome == outcome


async def test_a_missed_occurrence_is_explained_with_the_span_and_the_reason(connection: Connection) -> None:
    await put(connection, DAILY)
    term = await begin_term(connection, "test")
    await fire(term, connection, DUE + 3 * DAY + timedelta(minutes=30))
    explanation = await explain_job(connection, DUE + 4 * DAY, DUE + DAY)
    assert explanation.outcome == "missed"
    assert explanation.sentence == (
        "missed at 2026-03-03 08:00:00 EST (13:00:00 UTC), one of 3 from 2026-03-02 08:00:00 EST (13:00:00 UTC) to "
        "2026-03-04 08:00:00 EST (13:00:00 UTC): a later one fired in their place; recorded at "
        "2026-03-05 08:30:00 EST (13:30:00 UTC), seq 1, generation 1"
    )
    assert (explanation.facts["count"], explanation.facts["reason"]) == (
        3,
        "a later one fired in their place",
    )
    assert (await explain_job(connection, DUE + 4 * DAY, DUE + 2 * DAY)).outcome == "missed"
    assert (await explain_job(connection, DUE + 4 * DAY, DUE + 3 * DAY)).outcome == "late"
    between = await explain_job(connection, DUE + 4 * DAY, DUE + DAY / 2)
    assert between.outcome == "not-an-occurrence"


async def test_a_single_miss_is_explained_with_its_reason_and_no_span(connection: Connection) -> None:
    await put(connection, DAILY, catch_up="none")
    term = await begin_term(connection, "test")
    await fire(term, connection, DUE + timedelta(minutes=30))
    assert (await explain_job(connection, DUE + timedelta(hours=1))).sentence == (
        "missed at 2026-03-02 08:00:00 EST (13:00:00 UTC): late, and catch_up is none; recorded at "
        "2026-03-02 08:30:00 EST (13:30:00 UTC), seq 1, generation 1"
    )


async def test_an_occurrence_during_a_pause_is_explained_by_the_pause(connection: Connection) -> None:
    await put(connection, DAILY)
    await pause(connection, "", "job", await acting_at(connection, "bob", at(60)))
    still = await explain_job(connection, DUE + timedelta(hours=1))
    assert (still.outcome, still.facts["who"], still.facts["acted_at"]) == ("paused", "bob", at(60))
    assert still.sentence == (
        "did not fire at 2026-03-02 08:00:00 EST (13:00:00 UTC): bob via cli at 2026-03-02 03:01:00 EST (08:01:00 UTC) "
        "paused it (generation 2); it is still paused"
    )
    await put(connection, DAILY, at(90), payload={"k": 1}, enabled=False)
    await put(connection, DAILY, DUE + timedelta(hours=1), payload={"k": 2}, enabled=False)
    await resume(connection, "", "job", await acting_at(connection, "eve", DUE + timedelta(hours=2)))
    assert (await explain_job(connection, DUE + timedelta(hours=3))).sentence == (
        "did not fire at 2026-03-02 08:00:00 EST (13:00:00 UTC): bob via cli at 2026-03-02 03:01:00 EST (08:01:00 UTC) "
        "paused it (generation 2); eve via cli at 2026-03-02 10:00:00 EST (15:00:00 UTC) made it active again "
        "(generation 5)"
    )


async def test_an_occurrence_that_was_overdue_when_the_schedule_was_paused_is_explained_as_such(
    connection: Connection,
) -> None:
    await put(connection, DAILY)
    await pause(connection, "", "job", await acting_at(connection, "bob", DUE + timedelta(seconds=5)))
    explanation = await explain_job(connection, DUE + timedelta(hours=1))
    assert explanation.outcome == "paused"
    assert explanation.sentence == (
        "did not fire at 2026-03-02 08:00:00 EST (13:00:00 UTC): generation 1 had not fired it yet when bob via cli at "
        "2026-03-02 08:00:05 EST (13:00:05 UTC) paused it (generation 2), and a change never fires retroactively"
    )


async def test_an_occurrence_that_an_edit_removed_is_explained_by_the_edit(connection: Connection) -> None:
    await put(connection, DAILY)
    await put(connection, {**DAILY, "cron": "0 9 * * *"}, at(60))
    await put(connection, {**DAILY, "cron": "0 10 * * *"}, at(90))
    explanation = await explain_job(connection, DUE + timedelta(hours=1), DUE)
    assert (explanation.outcome, explanation.facts["generation"], explanation.facts["act_generation"]) == (
        "edited",
        1,
        2,
    )
    assert explanation.sentence == (
        "did not fire at 2026-03-02 08:00:00 EST (13:00:00 UTC): generation 1 named this time, ann via cli at "
        "2026-03-02 03:01:00 EST (08:01:00 UTC) edited it to cron 0 9 * * * in America/New_York (generation 2); "
        "the next time is 2026-03-02 10:00:00 EST (15:00:00 UTC)"
    )


async def test_an_edit_replaces_an_overdue_occurrence(connection: Connection) -> None:
    await put(connection, DAILY)
    await put(connection, {**DAILY, "cron": "*/30 8 * * *"}, DUE + timedelta(milliseconds=500))
    explanation = await explain_job(connection, DUE + timedelta(minutes=1))
    assert explanation.outcome == "edited"
    assert "had not fired it yet when ann via cli at 2026-03-02 08:00:00.500 EST" in explanation.sentence


async def test_a_spread_fire_is_explained_with_its_delay(connection: Connection) -> None:
    await put(connection, DAILY, spread=timedelta(hours=1))
    term = await begin_term(connection, "test")
    due = (await schedule(connection, "job"))["fire_at"]
    before = await explain_job(connection, DUE + timedelta(seconds=1))
    assert before.outcome == "pending"
    await fire(term, connection, due, timedelta(milliseconds=4))
    explanation = await explain_job(connection, DUE + timedelta(hours=2))
    assert (explanation.outcome, explanation.facts["due_at"], explanation.facts["nominal_at"]) == (
        "spread",
        due,
        DUE,
    )
    assert explanation.sentence == (
        "fired at 2026-03-02 08:02:17.672 EST (13:02:17.672 UTC), seq 1, generation 1, 4 ms late; its spread put it "
        "2m17s after its nominal time 2026-03-02 08:00:00 EST (13:00:00 UTC)"
    )


async def test_a_fire_that_dst_moved_is_explained_with_the_move(connection: Connection) -> None:
    moved = datetime(2026, 3, 8, 7, 0, tzinfo=UTC)
    await put(connection, {**DAILY, "cron": "30 2 * * *"}, moved - DAY / 2)
    term = await begin_term(connection, "test")
    await fire(term, connection, moved, timedelta(milliseconds=3))
    explanation = await explain_job(connection, moved + timedelta(hours=1))
    assert (explanation.outcome, explanation.facts["nominal_at"]) == ("moved", moved)
    assert explanation.sentence == (
        "fired at 2026-03-08 03:00:00 EDT (07:00:00 UTC), seq 1, generation 1, 3 ms late; "
        "02:30 does not exist on this day: moved to 03:00"
    )
    skipped = await explain_job(connection, moved + timedelta(hours=1), moved + timedelta(minutes=30))
    assert skipped.sentence == (
        "2026-03-08 03:30:00 EDT (07:30:00 UTC) is not an occurrence of cron 30 2 * * * in America/New_York "
        "(generation 1); the nearest: 2026-03-08 03:00:00 EDT (07:00:00 UTC) "
        "[02:30 does not exist on this day: moved to 03:00] and 2026-03-09 02:30:00 EDT (06:30:00 UTC)"
    )


async def test_a_time_after_the_end_is_explained_with_the_last_occurrence(connection: Connection) -> None:
    await put(connection, {**DAILY, "ends_at": DUE + timedelta(hours=1)})  # type: ignore[dict-item]
    term = await begin_term(connection, "test")
    await fire(term, connection, DUE)
    explanation = await explain_job(connection, DUE + 2 * DAY, DUE + DAY)
    assert (explanation.outcome, explanation.facts["last_at"]) == ("ended", DUE)
    assert explanation.sentence == (
        "did not fire at 2026-03-03 08:00:00 EST (13:00:00 UTC): cron 0 8 * * * in America/New_York has no time after "
        "2026-03-02 08:00:00 EST (13:00:00 UTC), the schedule is ended, generation 1"
    )
    assert (await explain_job(connection, DUE + 2 * DAY)).sentence == (
        "fired at 2026-03-02 08:00:00 EST (13:00:00 UTC), seq 1, generation 1, 0 ms late; it was the last one, "
        "the schedule has ended"
    )


async def test_an_occurrence_after_a_cancel_is_explained_by_the_cancel(connection: Connection) -> None:
    await put(connection, {"at": "2026-03-02T13:00:00Z"})
    await cancel(connection, "", "job", await acting_at(connection, "bob", at(60)))
    explanation = await explain_job(connection, at(120))
    assert (explanation.outcome, explanation.facts["who"]) == ("cancelled", "bob")
    assert explanation.sentence == (
        "would not fire at 2026-03-02 13:00:00 UTC: bob via cli at 2026-03-02 08:01:00 UTC cancelled it (generation 2)"
    )
    assert (await explain_job(connection, DUE + DAY)).sentence.startswith(
        "did not fire at 2026-03-02 13:00:00 UTC: bob"
    )


async def test_a_parked_tick_is_explained_with_its_error(connection: Connection) -> None:
    await put(connection, DAILY)
    await connection.execute("update tocsin.schedule set recurrence = '{\"cron\": 5}'")
    term = await begin_term(connection, "test", max_failures=2)
    await fire(term, connection, DUE)
    failing = await explain_job(connection, DUE)
    assert failing.outcome == "pending"
    assert "1 attempts failed (" in failing.sentence
    assert "the next one is at 2026-03-02 08:00:01 EST (13:00:01 UTC)" in failing.sentence
    await fire(term, connection, DUE + timedelta(seconds=1))
    error = (await schedule(connection, "job"))["last_error"]
    explanation = await explain_job(connection, DUE + DAY / 2)
    assert (explanation.outcome, explanation.facts["attempts"], explanation.facts["last_error"]) == (
        "parked",
        2,
        error,
    )
    assert explanation.sentence == (
        f"did not fire at 2026-03-02 08:00:00 EST (13:00:00 UTC): its timer {await timer_of(connection)} was parked at "
        f"2026-03-02 08:00:01 EST (13:00:01 UTC) after 2 attempts ({error}), generation 1; "
        "edit the schedule to arm it again"
    )
    assert (await explain_job(connection, DUE + 2 * DAY, DUE + DAY)).outcome == "parked"


async def test_an_occurrence_to_come_is_explained_with_its_due_time(connection: Connection) -> None:
    await put(connection, DAILY)
    timer = await timer_of(connection)
    explanation = await explain_job(connection, T0)
    assert (explanation.outcome, explanation.facts["due_at"]) == ("pending", DUE)
    assert explanation.sentence == (
        f"not due yet: fires at 2026-03-02 08:00:00 EST (13:00:00 UTC), in 5h, timer {timer}, generation 1"
    )
    assert (await explain_job(connection, T0, DUE + DAY)).sentence.startswith(
        "not due yet: fires at 2026-03-03 08:00:00"
    )
    overdue = await explain_job(connection, DUE + timedelta(minutes=2))
    assert overdue.sentence == (
        f"has not fired at 2026-03-02 08:00:00 EST (13:00:00 UTC) yet: it is 2m overdue, timer {timer}, generation 1; "
        "`tocsin doctor` shows whether a clock runs"
    )


async def test_a_time_that_is_not_an_occurrence_is_explained_with_the_nearest_ones(
    connection: Connection,
) -> None:
    await put(connection, DAILY)
    term = await begin_term(connection, "test")
    await fire(term, connection, DUE)
    explanation = await explain_job(connection, DUE + DAY, DUE + timedelta(hours=12))
    assert explanation.outcome == "not-an-occurrence"
    assert (explanation.facts["nearest_before"], explanation.facts["nearest_after"]) == (DUE, DUE + DAY)
    assert explanation.sentence == (
        "2026-03-02 20:00:00 EST (2026-03-03 01:00:00 UTC) is not an occurrence of cron 0 8 * * * in America/New_York "
        "(generation 1); the nearest: 2026-03-02 08:00:00 EST (13:00:00 UTC) and 2026-03-03 08:00:00 EST (13:00:00 UTC)"
    )


async def test_a_time_that_exdates_remove_is_explained_as_excluded(connection: Connection) -> None:
    recurrence: Any = {
        "rrule": "FREQ=DAILY;BYHOUR=8;BYMINUTE=0;BYSECOND=0",
        "dtstart": "2026-01-01T08:00:00",
        "exdates": ("2026-03-03T08:00:00",),
        "tz": "America/New_York",
    }
    await put(connection, recurrence)
    explanation = await explain_job(connection, DUE, DUE + DAY)
    assert explanation.outcome == "excluded"
    assert explanation.sentence.startswith(
        "did not fire at 2026-03-03 08:00:00 EST (13:00:00 UTC): excluded by exdates of rrule"
    )
    assert explanation.sentence.endswith("; the next time is 2026-03-04 08:00:00 EST (13:00:00 UTC)")


async def test_a_time_that_a_calendar_removes_is_explained_as_excluded(connection: Connection) -> None:
    days: Any = {"except": {"us-holidays": {"dates": ["2026-03-03"]}}}
    await put(connection, {"cron": "0 8 * * *", "tz": "America/New_York", "days": days})
    explanation = await explain_job(connection, DUE, DUE + DAY)
    assert explanation.outcome == "excluded"
    assert explanation.sentence == (
        "did not fire at 2026-03-03 08:00:00 EST (13:00:00 UTC): excluded by calendar us-holidays (generation 1); "
        "the next time is 2026-03-04 08:00:00 EST (13:00:00 UTC)"
    )


async def test_a_time_that_a_calendar_moves_is_explained_with_the_shift(connection: Connection) -> None:
    days: Any = {"except": {"us-holidays": {"dates": ["2026-03-03"]}}, "shift": "next"}
    await put(connection, {"cron": "0 8 3 * *", "tz": "America/New_York", "days": days})
    explanation = await explain_job(connection, DUE, DUE + DAY)
    assert explanation.outcome == "excluded"
    assert "excluded by calendar us-holidays, moved to the next day that is allowed" in explanation.sentence
    term = await begin_term(connection, "test")
    await fire(term, connection, DUE + 2 * DAY)
    explanation = await explain_job(connection, DUE + 3 * DAY, DUE + 2 * DAY)
    assert explanation.sentence.endswith("moved from Tue 2026-03-03, excluded by calendar us-holidays")
