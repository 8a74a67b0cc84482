"""Explanations name the right generation, owner and second, also after records were lost."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from clock.explain.explanation import ScheduleRecords, explain, possible_ids
from clock.explain.history import history_of
from clock.explain.records import explain_schedule
from clock.schedule_commands import pause, run_now
from clock.term import begin_term
from tests.clock.clock_setup import T0, at, schedule
from tests.clock.explain.explained_job import DAILY, DAY, DUE, acting_at, explain_job, fire, put
from tocsin.core.db import Connection
from tocsin.core.errors import InvalidInput, Refused


async def test_a_fire_is_found_under_the_generation_that_an_edit_replaced(connection: Connection) -> None:
    await put(connection, DAILY)
    term = await begin_term(connection, "test")
    await fire(term, connection, DUE)
    await put(connection, DAILY, DUE + timedelta(hours=1), payload={"k": 1})
    await run_now(connection, "", "job", await acting_at(connection, "ann", DUE + timedelta(hours=2)))
    await fire(term, connection, DUE + DAY)
    explanations = [await explain_job(connection, DUE + 2 * DAY, DUE + days * DAY) for days in (0, 1)]
    assert [(explanation.outcome, explanation.facts["generation"]) for explanation in explanations] == [
        ("fired", 1),
        ("fired", 2),
    ]


async def test_a_schedule_cancelled_in_sql_is_explained_as_well(connection: Connection) -> None:
    await connection.execute("select set_config('tocsin.now', %s, false)", (T0.isoformat(),))
    await connection.execute("select tocsin.schedule_once('', 'job', %s, created_by => 'ann')", (DUE,))
    assert (await explain_job(connection, T0)).outcome == "pending"
    await connection.execute("select tocsin.schedule_cancel('', 'job', 'bob')")
    explanation = await explain_job(connection, DUE + DAY)
    assert explanation.sentence == (
        "did not fire at 2026-03-02 13:00:00 UTC: bob via sql at 2026-03-02 08:00:00 UTC cancelled it (generation 2)"
    )


async def test_a_parked_schedule_with_an_invalid_recurrence_is_explained(
    connection: Connection,
) -> None:
    await put(connection, DAILY)
    await connection.execute("update tocsin.schedule set recurrence = '{}'")
    await connection.execute("delete from tocsin.audit")
    await fire(await begin_term(connection, "test", max_failures=1), connection, DUE)
    assert (await explain_job(connection, DUE + DAY / 2)).outcome == "parked"
    assert (await explain_job(connection, DUE + 2 * DAY, DUE + DAY)).outcome == "parked"


async def test_a_change_at_the_instant_of_an_occurrence_counts_as_later(connection: Connection) -> None:
    await put(connection, DAILY)
    await pause(connection, "", "job", await acting_at(connection, "bob", DUE))
    explanation = await explain_job(connection, DUE + timedelta(hours=1), DUE)
    assert (explanation.outcome, explanation.facts["generation"], explanation.facts["act_generation"]) == (
        "paused",
        1,
        2,
    )


async def test_a_time_before_it_was_added_is_not_an_occurrence(connection: Connection) -> None:
    await put(connection, DAILY)
    explanation = await explain_job(connection, DUE, DUE - 3 * DAY)
    assert explanation.outcome == "not-an-occurrence"
    assert explanation.sentence.endswith(
        "it was added later: ann via cli at 2026-03-02 03:00:00 EST (08:00:00 UTC); "
        "the nearest: 2026-03-02 08:00:00 EST (13:00:00 UTC)"
    )


async def test_a_one_shot_that_was_past_when_it_was_added_fired_late(connection: Connection) -> None:
    await connection.execute("select set_config('tocsin.now', %s, false)", (DUE.isoformat(),))
    await connection.execute("select tocsin.schedule_once('', 'job', %s)", (T0,))
    assert "it is 5h overdue" in (await explain_job(connection, DUE)).sentence
    await fire(await begin_term(connection, "test"), connection, DUE)
    explanation = await explain_job(connection, DUE + DAY)
    assert explanation.outcome == "late"
    assert explanation.sentence.endswith(
        "; this time had passed when it was added at 2026-03-02 13:00:00 UTC"
    )


async def test_an_occurrence_whose_record_is_gone_is_unrecorded(connection: Connection) -> None:
    await put(connection, DAILY)
    await fire(await begin_term(connection, "test"), connection, DUE)
    await connection.execute("delete from tocsin.event")
    explanation = await explain_job(connection, DUE + timedelta(hours=1))
    assert explanation.outcome == "unrecorded"
    assert explanation.sentence.startswith("there is no record of 2026-03-02 08:00:00 EST (13:00:00 UTC)")


async def test_an_occurrence_whose_record_was_pruned_is_unrecorded(connection: Connection) -> None:
    """Without its record, an edit after the fire would look as if it had come before."""
    await put(connection, DAILY)
    await fire(await begin_term(connection, "test"), connection, DUE)
    await fire(await begin_term(connection, "test"), connection, DUE + DAY)
    await put(connection, {**DAILY, "cron": "0 9 * * *"}, DUE + DAY + timedelta(hours=1))
    await connection.execute("select tocsin.raise_horizon(2, 0)")
    await connection.execute("delete from tocsin.event where seq < 2")
    explanation = await explain_job(connection, DUE + 2 * DAY, DUE)
    assert (explanation.outcome, explanation.facts["log_from"]) == ("unrecorded", DUE + DAY)
    assert explanation.sentence == (
        "there is no longer a record of 2026-03-02 08:00:00 EST (13:00:00 UTC): generation 1 names it, and records "
        "older than 2026-03-03 08:00:00 EST (13:00:00 UTC) were dropped"
    )
    assert (await explain_job(connection, DUE + 2 * DAY, DUE + DAY)).outcome == "fired"


async def test_an_asked_instant_without_a_fraction_means_the_whole_second(connection: Connection) -> None:
    exact = at(10) + timedelta(microseconds=123_456)
    await put(connection, {"at": "2026-03-02T08:00:10.123456Z"})
    await fire(await begin_term(connection, "test"), connection, exact)
    outcomes = [
        (await explain_job(connection, at(15), exact)).outcome,
        (await explain_job(connection, at(15), at(10))).outcome,
        (await explain_job(connection, at(15), at(9))).outcome,
        (await explain_job(connection, at(15), at(10) + timedelta(microseconds=1))).outcome,
        (await explain_job(connection, at(15), at(11))).outcome,
    ]
    assert outcomes == ["fired", "fired", "not-an-occurrence", "not-an-occurrence", "ended"]


async def test_a_miss_belongs_to_the_generation_that_recorded_it(connection: Connection) -> None:
    await put(connection, DAILY, catch_up="none")
    await fire(await begin_term(connection, "test"), connection, DUE + 2 * DAY + timedelta(minutes=30))
    await put(connection, {**DAILY, "cron": "0 9 * * *"}, DUE + 2 * DAY + timedelta(hours=1))
    assert (await explain_job(connection, DUE + 3 * DAY, DUE + DAY)).facts["generation"] == 1
    explanation = await explain_job(connection, DUE + 3 * DAY, DUE + DAY + timedelta(hours=1))
    assert (explanation.outcome, explanation.facts["generation"]) == ("not-an-occurrence", 1)


async def test_the_latest_occurrence_belongs_to_the_generation_that_was_in_force(
    connection: Connection,
) -> None:
    await put(connection, DAILY)
    await fire(await begin_term(connection, "test"), connection, DUE)
    await put(connection, {**DAILY, "cron": "0 8 * * SUN"}, DUE + timedelta(hours=1))
    explanation = await explain_job(connection, DUE + 2 * DAY)
    assert (explanation.outcome, explanation.facts["nominal_at"]) == ("fired", DUE)


async def test_a_fire_takes_precedence_over_a_miss_and_over_the_tick(connection: Connection) -> None:
    await put(connection, DAILY)
    row = await schedule(connection, "job")
    history = history_of(row, [])
    (fired_id,) = possible_ids(row, history, DUE)
    fire_row = {"id": UUID(fired_id), "seq": 1, "fire_at": DUE, "recorded_at": DUE, "epoch": 1}
    span = {
        "first": DUE.isoformat(),
        "last": DUE.isoformat(),
        "count": 1,
        "at_least": False,
        "reason": "late",
    }
    missed_id = UUID(history[0].missed_id(row["id"], DUE))
    missed_row = {"id": missed_id, "seq": 2, "recorded_at": DUE, "payload": span}
    records = ScheduleRecords(row, history, DUE, DUE, {fired_id: fire_row}, [missed_row])
    assert explain(records).outcome == "fired"
    assert explain(replace(records, fires={})).outcome == "missed"
    assert explain(replace(records, fires={}, missed=[])).outcome == "pending"


async def test_a_tick_that_the_recurrence_no_longer_names_is_still_explained(
    connection: Connection,
) -> None:
    elsewhere = DUE + timedelta(minutes=30)
    await put(connection, DAILY)
    await connection.execute("update tocsin.timer set fire_at = %s, nominal_at = %s", (elsewhere, elsewhere))
    assert (await explain_job(connection, DUE, elsewhere)).outcome == "pending"
    await fire(await begin_term(connection, "test"), connection, elsewhere)
    assert (await explain_job(connection, DUE + timedelta(hours=1), elsewhere)).outcome == "fired"


async def test_a_generation_that_the_audit_lost_is_taken_from_the_schedule(connection: Connection) -> None:
    await put(connection, DAILY)
    await put(connection, {**DAILY, "cron": "0 9 * * *"}, at(60))
    await connection.execute("delete from tocsin.audit where verb = 'edit'")
    explanation = await explain_job(connection, at(120), DUE + timedelta(hours=1))
    assert (explanation.outcome, explanation.facts["generation"]) == ("pending", 2)


async def test_another_owners_schedule_of_the_same_name_is_not_mixed_in(connection: Connection) -> None:
    await put(connection, DAILY)
    await put(connection, DAILY, owner="plant", catch_up="none")
    await pause(connection, "", "job", await acting_at(connection, "bob", at(60)))
    await put(connection, DAILY, at(90), owner="plant", catch_up="none", payload={"k": 1})
    await fire(await begin_term(connection, "test"), connection, DUE + timedelta(hours=1))
    mine = await explain_job(connection, DUE + timedelta(hours=2), DUE)
    theirs = await explain_schedule(connection, "plant", "job", DUE + timedelta(hours=2), DUE)
    assert (mine.outcome, theirs.outcome) == ("paused", "missed")


async def test_an_unknown_schedule_and_a_naive_instant_are_refused(connection: Connection) -> None:
    with pytest.raises(Refused, match="there is no schedule 'job': `tocsin schedules` lists them"):
        await explain_job(connection, T0)
    await put(connection, DAILY)
    with pytest.raises(InvalidInput, match="has no timezone"):
        await explain_job(connection, T0, datetime(2026, 3, 2, 13, 0))
