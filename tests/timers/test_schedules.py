"""Schedules: added, edited, paused, resumed and cancelled, each with its one tick and its audit."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.sql import all_rows, one_row
from timers.schedule_spec import ScheduleSpec
from timers.schedules import (
    cancel_schedule,
    find_schedule,
    list_schedules,
    pause_schedule,
    put_schedule,
    resume_schedule,
)
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.errors import InvalidInput, Refused

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
BEAT = ScheduleSpec("beat", {"every": "10s"}, owner="plant")


def actor(after: timedelta = timedelta(0), who: str = "ann") -> Actor:
    return Actor(who, "test", T0 + after)


async def ticks(connection: Connection) -> list[dict[str, Any]]:
    return await all_rows(connection, "select * from tocsin.timer order by ref")


async def stored(connection: Connection) -> dict[str, Any]:
    row = await find_schedule(connection, "plant", "beat")
    assert row is not None
    return row


async def test_an_added_schedule_has_one_tick_and_an_audit_row(connection: Connection) -> None:
    put = await put_schedule(connection, BEAT, actor())
    assert (put.outcome, put.generation, put.next_at) == ("added", 1, T0 + 10 * SECOND)
    (tick,) = await ticks(connection)
    assert (tick["kind"], tick["ref"], tick["key"]) == ("schedule-tick", str(put.id), "")
    assert (tick["fire_at"], tick["nominal_at"], tick["generation"]) == (put.next_at, put.next_at, 1)
    (audit,) = await all_rows(connection, "select * from tocsin.audit")
    assert (audit["who"], audit["via"], audit["verb"], audit["name"]) == ("ann", "test", "add", "beat")
    assert (audit["old"], audit["new"]["status"]) == (None, "active")


async def test_putting_the_same_again_changes_nothing(connection: Connection) -> None:
    await put_schedule(connection, BEAT, actor())
    before = await stored(connection)
    again = await put_schedule(connection, BEAT, actor(3 * SECOND))
    assert (again.outcome, again.generation, again.next_at) == ("unchanged", 1, T0 + 10 * SECOND)
    assert await stored(connection) == before
    assert len(await all_rows(connection, "select * from tocsin.audit")) == 1


@pytest.mark.parametrize(
    "spec",
    [
        BEAT,
        replace(BEAT, recurrence={"cron": "@every 10s"}),
        replace(BEAT, recurrence={"cron": "H H * * *"}),
        replace(BEAT, recurrence={"rrule": "FREQ=DAILY;COUNT=5", "tz": "Europe/London"}),
        replace(BEAT, recurrence={"rrule": "FREQ=HOURLY"}),
        replace(BEAT, recurrence={"at": "2026-03-09T08:00"}, payload={"list": (1, 2), "n": 1.0}),
        replace(BEAT, spread=3 * SECOND, window=60 * SECOND, grace=SECOND, catch_up="all", action="tell"),
    ],
)
async def test_re_applying_later_moves_nothing(connection: Connection, spec: ScheduleSpec) -> None:
    first = await put_schedule(connection, spec, actor())
    again = await put_schedule(connection, spec, actor(timedelta(hours=3)))
    assert (again.outcome, again.next_at) == ("unchanged", first.next_at)


async def test_an_edit_creates_a_generation_and_returns_the_differences(connection: Connection) -> None:
    await put_schedule(connection, BEAT, actor())
    changed = await put_schedule(connection, replace(BEAT, payload={"k": 1}), actor(13 * SECOND, "bob"))
    assert (changed.outcome, changed.generation, changed.differences) == ("changed", 2, ("payload",))
    # The anchor is kept, so the occurrences do not move. The occurrence that was due at 10 s is not fired late.
    assert changed.next_at == T0 + 20 * SECOND
    (tick,) = await ticks(connection)
    assert (tick["generation"], tick["nominal_at"]) == (2, T0 + 20 * SECOND)
    _, audit = await all_rows(connection, "select * from tocsin.audit order by id")
    assert (audit["who"], audit["verb"]) == ("bob", "edit")
    assert (audit["old"]["payload"], audit["new"]["payload"]) == ({}, {"k": 1})
    assert audit["old"]["next_at"] == (T0 + 10 * SECOND).isoformat()


async def test_another_recurrence_counts_from_its_edit(connection: Connection) -> None:
    await put_schedule(connection, BEAT, actor())
    changed = await put_schedule(connection, replace(BEAT, recurrence={"every": "60s"}), actor(13 * SECOND))
    assert (changed.differences, changed.next_at) == (("recurrence",), T0 + 73 * SECOND)


async def test_a_paused_schedule_has_no_tick_and_resumes_after_now(connection: Connection) -> None:
    await put_schedule(connection, BEAT, actor())
    paused = await pause_schedule(connection, "plant", "beat", actor(SECOND))
    assert (paused.outcome, paused.generation, paused.next_at) == ("changed", 2, None)
    assert await ticks(connection) == []
    assert (await pause_schedule(connection, "plant", "beat", actor(2 * SECOND))).outcome == "unchanged"
    assert (await stored(connection))["status"] == "paused"

    resumed = await resume_schedule(connection, "plant", "beat", actor(95 * SECOND))
    assert (resumed.generation, resumed.next_at) == (3, T0 + 100 * SECOND)
    assert (await resume_schedule(connection, "plant", "beat", actor(96 * SECOND))).outcome == "unchanged"
    verbs = await all_rows(connection, "select verb from tocsin.audit order by id")
    assert [row["verb"] for row in verbs] == ["add", "pause", "resume"]


async def test_a_cancelled_schedule_keeps_its_row_and_can_be_put_again(connection: Connection) -> None:
    first = await put_schedule(connection, BEAT, actor())
    cancelled = await cancel_schedule(connection, "plant", "beat", actor(SECOND))
    assert (cancelled.outcome, cancelled.next_at) == ("changed", None)
    assert await ticks(connection) == []
    assert (await stored(connection))["status"] == "cancelled"
    assert (await cancel_schedule(connection, "plant", "beat", actor(SECOND))).outcome == "unchanged"
    for refused in (pause_schedule, resume_schedule):
        with pytest.raises(Refused, match="schedule 'beat' is cancelled and cannot be"):
            await refused(connection, "plant", "beat", actor(SECOND))

    revived = await put_schedule(connection, BEAT, actor(35 * SECOND))
    assert (revived.outcome, revived.id, revived.generation) == ("changed", first.id, 3)
    assert revived.next_at == T0 + 40 * SECOND


async def test_a_disabled_schedule_is_paused_from_the_start(connection: Connection) -> None:
    off = replace(BEAT, enabled=False)
    assert (await put_schedule(connection, off, actor())).next_at is None
    assert await ticks(connection) == []
    assert (await put_schedule(connection, off, actor())).outcome == "unchanged"
    edited = await put_schedule(connection, replace(off, payload={"k": 1}), actor())
    assert (edited.outcome, edited.next_at) == ("changed", None)
    enabled = await put_schedule(connection, replace(BEAT, payload={"k": 1}), actor(SECOND))
    assert enabled.next_at == T0 + 10 * SECOND
    disabled = await put_schedule(connection, replace(off, payload={"k": 1}), actor(SECOND))
    assert (disabled.outcome, await ticks(connection)) == ("changed", [])


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("status", ["fired", "ended", "failed"])
async def test_a_finished_schedule_stays_finished_until_its_content_changes(
    connection: Connection, status: str, enabled: bool
) -> None:
    await put_schedule(connection, BEAT, actor())
    await connection.execute("delete from tocsin.timer")
    await connection.execute("update tocsin.schedule set status = %s", (status,))
    again = await put_schedule(connection, replace(BEAT, enabled=enabled), actor())
    assert (again.outcome, (await stored(connection))["status"]) == ("unchanged", status)
    revived = await put_schedule(connection, replace(BEAT, payload={"k": 1}), actor())
    assert (revived.outcome, (await stored(connection))["status"]) == ("changed", "active")


async def test_a_one_shot_in_the_past_is_refused_and_leaves_nothing(connection: Connection) -> None:
    past = replace(BEAT, recurrence={"at": "2026-03-02T07:59:59Z"})
    with pytest.raises(Refused, match="schedule 'beat' would never fire again"):
        await put_schedule(connection, past, actor())
    assert await find_schedule(connection, "plant", "beat") is None
    assert await ticks(connection) == []


async def test_an_edit_of_an_older_generation_is_refused_with_the_author_of_the_newer_one(
    connection: Connection,
) -> None:
    await put_schedule(connection, BEAT, actor())
    await connection.execute("select set_config('tocsin.now', %s, false)", ((T0 + SECOND).isoformat(),))
    await put_schedule(connection, replace(BEAT, payload={"k": 1}), actor(SECOND, "bob"), if_generation=1)
    for change in (pause_schedule, resume_schedule, cancel_schedule):
        with pytest.raises(
            Refused, match=r"at generation 2, not 1: bob changed it via test at 2026-03-02 08:00:01 UTC"
        ):
            await change(connection, "plant", "beat", actor(), if_generation=1)
    with pytest.raises(Refused, match="generation 2, not 7"):
        await put_schedule(connection, BEAT, actor(), if_generation=7)
    assert (await stored(connection))["generation"] == 2


async def test_a_missing_schedule_is_named_in_the_error(connection: Connection) -> None:
    for change in (pause_schedule, resume_schedule, cancel_schedule):
        with pytest.raises(Refused, match="there is no schedule 'beat' of owner 'plant'"):
            await change(connection, "plant", "beat", actor())
    with pytest.raises(Refused, match="there is no schedule"):
        await put_schedule(connection, BEAT, actor(), if_generation=1)
    assert await list_schedules(connection) == []


async def test_a_done_occurrence_is_never_armed_again(connection: Connection) -> None:
    """A clock that ran ahead fired an hour of beats. It was then set back, and the schedule was edited."""
    await put_schedule(connection, BEAT, actor())
    hour = timedelta(hours=1)
    await connection.execute(
        "update tocsin.timer set last_nominal_at = %s, nominal_at = %s, fire_at = %s",
        (T0 + hour, T0 + hour + 10 * SECOND, T0 + hour + 10 * SECOND),
    )
    edited = await put_schedule(connection, replace(BEAT, payload={"k": 1}), actor(SECOND))
    assert edited.next_at == T0 + hour + 10 * SECOND
    await pause_schedule(connection, "plant", "beat", actor(SECOND))
    assert (await stored(connection))["last_occurrence"] == T0 + hour
    resumed = await resume_schedule(connection, "plant", "beat", actor(SECOND))
    assert resumed.next_at == T0 + hour + 10 * SECOND
    (tick,) = await ticks(connection)
    assert tick["last_nominal_at"] == T0 + hour


async def test_an_edit_resets_the_failures_of_a_parked_tick(connection: Connection) -> None:
    await put_schedule(connection, BEAT, actor())
    await connection.execute("update tocsin.timer set attempts = 5, last_error = 'x', parked_at = %s", (T0,))
    await put_schedule(connection, replace(BEAT, payload={"k": 1}), actor())
    (tick,) = await ticks(connection)
    assert (tick["attempts"], tick["last_error"], tick["parked_at"]) == (0, None, None)


async def test_a_spread_delays_the_tick_and_keeps_the_nominal_time(connection: Connection) -> None:
    await put_schedule(connection, replace(BEAT, spread=9 * SECOND), actor())
    (tick,) = await ticks(connection)
    assert tick["nominal_at"] == T0 + 10 * SECOND
    assert tick["nominal_at"] < tick["fire_at"] < tick["nominal_at"] + 9 * SECOND
    with pytest.raises(InvalidInput, match="is not shorter than the distance"):
        await put_schedule(connection, replace(BEAT, spread=10 * SECOND), actor())


async def test_a_refused_edit_inside_the_callers_transaction_leaves_it_usable(connection: Connection) -> None:
    async with connection.transaction():
        await put_schedule(connection, BEAT, actor())
        with pytest.raises(Refused):
            await put_schedule(connection, BEAT, actor(), if_generation=9)
        await put_schedule(connection, replace(BEAT, name="other"), actor())
    assert {row["name"] for row in await list_schedules(connection)} == {"beat", "other"}


async def test_schedules_are_listed_next_fire_first_and_by_every_filter(connection: Connection) -> None:
    await put_schedule(connection, replace(BEAT, name="b", type="tick"), actor())
    await put_schedule(
        connection, replace(BEAT, name="a", recurrence={"every": "5s"}, source="rules"), actor()
    )
    await put_schedule(connection, replace(BEAT, name="p", owner="", enabled=False), actor())

    async def names(**filters: Any) -> list[str]:
        return [row["name"] for row in await list_schedules(connection, **filters)]

    assert await names() == ["a", "b", "p"]
    assert await names(owner="plant") == ["a", "b"]
    assert await names(owner="") == ["p"]
    assert await names(type="tick") == ["b"]
    assert await names(status="paused") == ["p"]
    assert await names(source="rules") == ["a"]
    assert await names(limit=1) == ["a"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "the name '' has 0 characters: give it 1 to 128"),
        ({"name": "n" * 129}, "has 129 characters"),
        ({"owner": "o" * 129}, "the owner 'o"),
        ({"name": "a\0b"}, "cannot be stored"),
        ({"owner": "\ud800"}, "cannot be stored"),
        ({"action": ""}, "the action '' has 0 characters"),
        ({"type": "two words"}, "the type 'two words' of schedule 'beat'"),
        (
            {"catch_up": "some"},
            "the catch_up 'some' of schedule 'beat' is unknown: use one of latest, all, none",
        ),
        ({"source": "git"}, "the source 'git'"),
        ({"max_catch_up": 0}, "the max_catch_up 0 .* between 1 and 10000"),
        ({"max_catch_up": 10_001}, "the max_catch_up 10001"),
        ({"grace": timedelta(seconds=-1)}, "the grace .* is negative"),
        ({"window": timedelta(seconds=-1)}, "the window .* is negative"),
        ({"spread": timedelta(seconds=-1)}, "the spread .* is negative"),
        ({"payload": {"x": float("nan")}}, "the payload of schedule 'beat' is not JSON"),
        ({"payload": {"x": T0}}, "the payload of schedule 'beat' is not JSON"),
        (
            {"payload": {"x": "a\0b"}},
            "the payload of schedule 'beat' has a character that cannot be stored",
        ),
        (
            {"payload": {"x": "\udc00"}},
            "the payload of schedule 'beat' has a character that cannot be stored",
        ),
        ({"payload": {"x": "x" * 229_376}}, "at most 229376"),
        (
            {"catch_up": "all", "max_catch_up": 1000, "payload": {"x": "x" * 200_000}},
            r"1000 fires \(max_catch_up\) of schedule 'beat' with its payload of 200009 bytes",
        ),
    ],
)
async def test_a_value_that_cannot_be_stored_or_fired_is_refused_by_name(
    connection: Connection, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        await put_schedule(connection, replace(BEAT, **change), actor())
    assert await list_schedules(connection) == []


async def test_the_largest_payload_is_stored(connection: Connection) -> None:
    payload = {"x": "ü" * ((229_376 - len('{"x": ""}')) // 2)}
    await put_schedule(connection, replace(BEAT, payload=payload), actor())
    assert (await one_row(connection, "select payload from tocsin.schedule"))["payload"] == payload


def test_an_actor_with_a_naive_instant_is_refused() -> None:
    with pytest.raises(InvalidInput, match="has no timezone"):
        Actor("ann", "test", datetime(2026, 3, 2))
