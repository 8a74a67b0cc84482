"""A due tick becomes one event, and the tick moves on."""

from __future__ import annotations

import importlib
import json
import random

import pytest

from clock import ticks
from clock.term import begin_term
from tests.clock.clock_setup import BEAT, ONCE, SECOND, T0, at, drain, fired, put, schedule
from tests.records import events
from tests.sessions import Sessions
from tests.sql import all_rows, one_row
from timers.identity import event_id_text
from timers.schedule_spec import ScheduleSpec
from timers.schedules import list_schedules, pause_schedule
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.instant import instant_text


async def test_a_due_tick_becomes_one_scheduled_event(connection: Connection) -> None:
    made = await put(connection, owner="plant", payload={"k": [1, None]}, type="beat-due", action="tell")
    assert made.next_at == at(10)
    term = await begin_term(connection, "test")

    assert (await term.run_once(at(9.9))).timers == 0
    batch = await term.run_once(at(10))
    assert (batch.timers, batch.fires, batch.more) == (1, 1, False)

    (event,) = await events(connection)
    assert (event["seq"], event["origin"], event["type"]) == (1, "scheduled", "beat-due")
    assert (event["schedule"], event["owner"], event["payload"]) == ("beat", "plant", {"k": [1, None]})
    assert (event["ts"], event["fire_at"], event["action"]) == (at(10), at(10), "tell")
    assert (event["epoch"], event["correlation_id"]) == (term.epoch, event["id"])
    assert event["id"].hex == event_id_text(str(made.id), 1, "2026-03-02T08:00:10Z")
    tick = await one_row(connection, "select * from tocsin.timer")
    assert (tick["fire_at"], tick["nominal_at"], tick["last_nominal_at"]) == (at(20), at(20), at(10))


async def test_an_occurrence_fires_once_however_often_the_clock_scans(connection: Connection) -> None:
    await put(connection)
    term = await begin_term(connection, "test")
    for now in (10, 10, 10.3, 11, 15, 20, 20.2, 29.9):
        await term.run_once(at(now))
    assert await fired(connection) == [("beat", at(10)), ("beat", at(20))]


async def test_a_one_shot_that_fired_keeps_its_schedule_row(connection: Connection) -> None:
    await put(connection, ONCE)
    term = await begin_term(connection, "test")
    assert (await term.run_once(at(10))).fires == 1
    row = await schedule(connection, "once")
    assert (row["status"], row["last_occurrence"], row["nominal_at"]) == ("fired", at(10), None)
    assert row["updated_at"] == at(10)
    assert await all_rows(connection, "select * from tocsin.timer") == []


async def test_a_missed_one_shot_has_ended_with_an_event(connection: Connection) -> None:
    await put(connection, ONCE, catch_up="none")
    term = await begin_term(connection, "test")
    batch = await term.run_once(at(3600))
    assert (batch.timers, batch.fires) == (1, 0)
    assert (await schedule(connection, "once"))["status"] == "ended"
    (event,) = await events(connection)
    assert (event["origin"], event["type"], event["ts"]) == ("derived", "schedule-missed", at(10))


async def test_a_recurrence_without_a_next_time_has_ended(connection: Connection) -> None:
    await put(connection, recurrence={"every": "10s", "ends_at": at(25)})
    term = await begin_term(connection, "test")
    for now in (10, 20, 30):
        await term.run_once(at(now))
    assert await fired(connection) == [("beat", at(10)), ("beat", at(20))]
    row = await schedule(connection)
    assert (row["status"], row["last_occurrence"]) == ("ended", at(20))


async def test_missed_occurrences_are_one_record_before_the_fire(connection: Connection) -> None:
    made = await put(connection, owner="plant", payload={"k": 1})
    term = await begin_term(connection, "test")
    batch = await term.run_once(at(57))
    assert (batch.timers, batch.fires) == (1, 1)
    missed, fire = await events(connection)
    assert (missed["origin"], missed["type"], missed["schedule"]) == ("derived", "schedule-missed", "beat")
    assert (missed["owner"], missed["ts"], missed["fire_at"], missed["action"]) == ("plant", at(40), None, "")
    assert missed["payload"] == {
        "count": 4,
        "at_least": False,
        "first": instant_text(at(10)),
        "last": instant_text(at(40)),
        "reason": "a later one fired in their place",
    }
    assert missed["id"].hex == event_id_text(str(made.id), 1, "missed/2026-03-02T08:00:10Z")
    assert (fire["origin"], fire["ts"], fire["payload"]) == ("scheduled", at(50), {"k": 1})
    tick = await one_row(connection, "select * from tocsin.timer")
    assert (tick["nominal_at"], tick["last_nominal_at"]) == (at(60), at(50))


async def test_each_policy_of_the_schedule_reaches_the_decision(connection: Connection) -> None:
    await put(connection, name="all", catch_up="all", max_catch_up=2)
    await put(connection, name="grace", catch_up="none", grace=60 * SECOND)
    await put(connection, name="window", window=3 * SECOND)
    term = await begin_term(connection, "test")
    await drain(term, at(35))
    assert sorted(await fired(connection)) == [
        ("all", at(20)),
        ("all", at(30)),
        ("grace", at(10)),
        ("grace", at(20)),
        ("grace", at(30)),
    ]
    assert sorted(await fired(connection, "derived")) == [("all", at(10)), ("window", at(30))]


async def test_a_beat_within_its_grace_catches_up_at_once(connection: Connection) -> None:
    """Sixty late beats of one second: each takes its own batch, without a pause between them."""
    await put(connection, recurrence={"every": "1s"}, grace=120 * SECOND)
    term = await begin_term(connection, "test")
    await drain(term, at(60))
    assert await fired(connection) == [("beat", at(n)) for n in range(1, 61)]


async def test_a_spread_delays_the_fire_and_not_the_nominal_time(connection: Connection) -> None:
    await put(connection, spread=9 * SECOND)
    tick = await one_row(connection, "select * from tocsin.timer")
    term = await begin_term(connection, "test")
    assert (await term.run_once(at(10))).timers == 0
    assert (await term.run_once(tick["fire_at"])).fires == 1
    (event,) = await events(connection)
    assert (event["ts"], event["fire_at"]) == (at(10), tick["fire_at"])
    moved = await one_row(connection, "select * from tocsin.timer")
    assert moved["fire_at"] - tick["fire_at"] == 10 * SECOND


async def test_lateness_counts_from_the_schedules_own_share_of_the_spread(connection: Connection) -> None:
    await put(connection, spread=9 * SECOND, grace=SECOND, catch_up="none")
    tick = await one_row(connection, "select * from tocsin.timer")
    assert tick["fire_at"] + 2 * SECOND < at(19), "the share is not the whole spread"
    term = await begin_term(connection, "test")
    assert (await term.run_once(tick["fire_at"] + 2 * SECOND)).fires == 0
    assert await fired(connection, "derived") == [("beat", at(10))]


async def test_schedules_that_share_a_recurrence_keep_their_own_spread_and_last_occurrence(
    connection: Connection,
) -> None:
    """Equal ticks are decided once; these are not equal."""
    for name in ("one", "two"):
        await put(connection, name=name, grace=60 * SECOND, spread=9 * SECOND)
    for name in ("done", "fresh"):
        await put(connection, name=name, grace=60 * SECOND)
    due = {row["name"]: row["fire_at"] for row in await list_schedules(connection)}
    assert due["one"] != due["two"]
    await connection.execute("update tocsin.schedule set last_occurrence = %s where name = 'done'", (at(10),))
    term = await begin_term(connection, "test")
    await drain(term, at(19.5))
    recorded = {event["schedule"]: event["fire_at"] for event in await events(connection)}
    assert recorded == {name: due[name] for name in ("one", "two", "fresh")}
    moved = {row["name"]: row["fire_at"] for row in await list_schedules(connection)}
    assert moved == {name: fire_at + 10 * SECOND for name, fire_at in due.items()}


async def test_fires_are_recorded_in_the_order_they_were_due(connection: Connection) -> None:
    for seconds in (7, 3, 9, 1, 5):
        await put(connection, name=f"every-{seconds}", recurrence={"every": f"{seconds}s"}, grace=60 * SECOND)
    term = await begin_term(connection, "test", batch=2)
    await drain(term, at(9.5), most=300)
    recorded = await fired(connection)
    first_of_each = dict(reversed(recorded))
    assert list(dict.fromkeys(name for name, _ in recorded)) == [f"every-{n}" for n in (1, 3, 5, 7, 9)]
    assert first_of_each == {f"every-{n}": at(n) for n in (1, 3, 5, 7, 9)}


async def test_a_burst_on_one_instant_is_fired_once_each_in_small_batches(connection: Connection) -> None:
    names = [f"beat-{number}" for number in range(95)]
    for name in names:
        await put(connection, name=name)
    term = await begin_term(connection, "test", batch=10)
    batches = await drain(term, at(10))
    assert [batch.fires for batch in batches] == [10] * 9 + [5]
    assert sorted(await fired(connection)) == sorted((name, at(10)) for name in names)
    assert [event["seq"] for event in await events(connection)] == list(range(1, 96))


@pytest.mark.parametrize("chunk", [1, 2, 250])
async def test_catch_up_all_is_cut_into_batches_without_losing_an_occurrence(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(ticks, "_CHUNK", chunk)
    monkeypatch.setattr(ticks, "EVENTS_PER_BATCH", 20)
    for number in range(5):
        await put(connection, name=f"beat-{number}", catch_up="all")
    term = await begin_term(connection, "test")
    batches = await drain(term, at(125))
    assert [batch.fires for batch in batches] == [24, 24, 12]
    assert len(set(await fired(connection))) == 60


@pytest.mark.parametrize("chunk", [1, 3, 250])
async def test_a_long_outage_of_many_crons_is_counted_a_few_at_a_time(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    """Counting minutes takes time in which other kinds wait. Fixed intervals are divided."""
    monkeypatch.setattr(ticks, "_CHUNK", chunk)
    monkeypatch.setattr(ticks, "COUNTED_PER_BATCH", 100)
    for number in range(4):
        cron = f"{number}-59 * * * *"
        await put(connection, ScheduleSpec(f"minutes-{number}", {"cron": cron, "tz": "UTC"}))
        await put(connection, name=f"beat-{number}")
    term = await begin_term(connection, "test", batch=100)
    first = await term.run_once(at(7200))
    # All beats are due before the first minute.
    assert (first.timers, first.more) == (5, True)
    batches = [first, *await drain(term, at(7200))]
    assert [batch.fires for batch in batches] == [5, 1, 1, 1]
    missed = [event["payload"]["count"] for event in await events(connection) if not event["fire_at"]]
    assert sorted(missed) == [113, 115, 117, 119, *[719] * 4]


async def test_a_batch_is_bounded_in_the_bytes_of_its_payloads(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compressed payload counts as what Postgres makes of it."""
    monkeypatch.setattr(ticks, "BYTES_PER_BATCH", 300_000)
    for number, payload in enumerate(("x" * 200_000, random_text(200_000), "small", "y" * 200_000)):
        await put(connection, name=f"beat-{number}", payload={"text": payload})
    batches = await drain(await begin_term(connection, "test", batch=100), at(10))
    assert sum(batch.fires for batch in batches) == 4
    assert max(batch.fires for batch in batches) <= 3
    assert len(batches) >= 2


def random_text(length: int) -> str:
    return random.Random(1).randbytes(length // 2).hex()


def test_single_times_fill_no_cache() -> None:
    parse = importlib.import_module("timers.recurrence.parse")
    caches = (ticks._recurring, parse._parse_recurring, parse._build)
    sizes = [cached.cache_info().currsize for cached in caches]
    for second in range(60):
        ticks._recurrence(json.dumps({"at": f"2031-03-02T08:00:{second:02}Z", "tz": "UTC"}))
    assert sizes == [cached.cache_info().currsize for cached in caches]


async def test_a_tick_whose_occurrence_is_done_moves_on_without_an_event(connection: Connection) -> None:
    """A tick row may point back for any reason. A done occurrence is not fired again."""
    await put(connection)
    await put(connection, ONCE)
    await connection.execute("update tocsin.timer set last_nominal_at = %s", (at(10),))
    term = await begin_term(connection, "test")
    batch = await term.run_once(at(10))
    assert (batch.timers, batch.fires) == (2, 0)
    assert await events(connection) == []
    assert (await schedule(connection))["nominal_at"] == at(20)
    assert (await schedule(connection, "once"))["status"] == "fired"


async def test_the_last_occurrence_of_the_schedule_prevents_a_second_fire_as_well(
    connection: Connection,
) -> None:
    await put(connection)
    await connection.execute("update tocsin.schedule set last_occurrence = %s", (at(30),))
    term = await begin_term(connection, "test")
    assert (await term.run_once(at(10))).fires == 0
    assert (await schedule(connection))["nominal_at"] == at(40)


async def test_a_row_that_another_transaction_has_locked_is_skipped_and_fired_later(
    connection: Connection, sessions: Sessions
) -> None:
    for name in ("free", "held"):
        await put(connection, name=name)
    holder = await sessions("holder")
    term = await begin_term(connection, "test")
    async with holder.transaction():
        await holder.execute(
            "select t.ref from tocsin.timer t join tocsin.schedule s on s.id::text = t.ref"
            " where s.name = 'held' for update of t"
        )
        await drain(term, at(10))
        assert await fired(connection) == [("free", at(10))]
    # The scan of the last two seconds finds it.
    await drain(term, at(10.2))
    assert await fired(connection) == [("free", at(10)), ("held", at(10))]


async def test_a_tick_of_another_generation_is_left_alone(connection: Connection) -> None:
    await put(connection)
    term = await begin_term(connection, "test")
    await connection.execute("update tocsin.schedule set generation = 2")
    assert (await term.run_once(at(10))).timers == 0
    await connection.execute("update tocsin.timer set generation = 2")
    assert (await term.run_once(at(11))).fires == 1


async def test_a_schedule_that_is_not_active_does_not_fire(connection: Connection) -> None:
    await put(connection)
    term = await begin_term(connection, "test")
    await connection.execute("update tocsin.schedule set status = 'paused'")
    await drain(term, at(10))
    assert await events(connection) == []


async def test_parked_ticks_are_not_scanned(connection: Connection) -> None:
    await put(connection)
    await connection.execute("update tocsin.timer set parked_at = %s", (T0,))
    term = await begin_term(connection, "test")
    assert (await term.run_once(at(10))).timers == 0


async def test_a_paused_and_resumed_beat_repeats_no_occurrence(connection: Connection) -> None:
    await put(connection)
    term = await begin_term(connection, "test")
    await term.run_once(at(10))
    await pause_schedule(connection, "", "beat", Actor("tester", "test", at(11)))
    await put(connection, BEAT)  # resumes as of T0, before the pause
    assert (await schedule(connection))["nominal_at"] == at(20)
