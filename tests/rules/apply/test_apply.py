"""An apply is all or nothing, changes only what differs, and holds from the seq of its own event."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from rules.apply import ApplyResult, transaction
from rules.documents.rule_book import known_names
from tests.cdc.published_records import with_long_timeouts
from tests.records import events
from tests.rules.apply.apply_setup import ACTOR, T0, action, put, rows, rule, schedule, versions
from timers.schedule_spec import ScheduleSpec
from timers.schedules import cancel_schedule, find_schedule, pause_schedule, put_schedule
from tocsin.core.audit import Actor
from tocsin.core.db import Connection, connect
from tocsin.core.errors import Refused
from tocsin.core.settings import Settings

LATER = replace(ACTOR, now=T0 + timedelta(minutes=1))


def outcomes(applied: ApplyResult) -> list[str]:
    return [change.outcome for change in applied.plan.changes]


async def outcome(connection: Connection, text: str, actor: Actor = ACTOR) -> list[str]:
    return outcomes(await put(connection, text, actor))


async def test_new_documents_are_added_and_recorded_in_one_event(connection: Connection) -> None:
    applied = await put(connection, schedule("beat") + action("tell") + rule("each", "tell"))
    assert [(change.key, change.outcome) for change in applied.plan.changes] == [
        (("schedule", "beat"), "added"),
        (("action", "tell"), "added"),
        (("action_rule", "each"), "added"),
    ]
    assert applied.next_at == {("schedule", "beat"): T0 + timedelta(seconds=10)}
    (event,) = await events(connection)
    assert (event["seq"], event["origin"], event["type"]) == (applied.seq, "caused", "rules-applied")
    assert (event["ts"], event["payload"]["who"], event["payload"]["via"]) == (T0, "tester", "test")
    assert event["payload"]["count"] == 3
    assert event["payload"]["documents"] == [
        {"kind": "schedule", "name": "beat", "version": 1, "outcome": "added"},
        {"kind": "action", "name": "tell", "version": 1, "outcome": "added"},
        {"kind": "action_rule", "name": "each", "version": 1, "outcome": "added"},
    ]
    assert await versions(connection) == [
        ("action", "tell", 1, 1, None),
        ("action_rule", "each", 1, 1, None),
        ("schedule", "beat", 1, 1, None),
    ]


async def test_applying_the_same_files_again_changes_nothing(connection: Connection) -> None:
    text = schedule("beat", extra="  payload: {x: 1.0e+23, y: 1.5, z: -7}\n") + action("tell")
    await put(connection, text)
    before = await rows(connection, "schedule")
    again = await put(connection, text, LATER)
    assert (again.seq, outcomes(again)) == (None, ["unchanged", "unchanged"])
    assert again.next_at == {("schedule", "beat"): T0 + timedelta(seconds=10)}
    assert await rows(connection, "schedule") == before
    assert len(await events(connection)) == 1
    assert len(await rows(connection, "audit")) == 2, "one of the schedule, one of the action"


async def test_a_change_creates_the_next_version_and_leaves_the_rest(connection: Connection) -> None:
    await put(connection, action("tell", "one") + action("other"))
    applied = await put(connection, action("tell", "two") + action("other"))
    assert outcomes(applied) == ["changed", "unchanged"]
    assert applied.seq == 2
    assert await versions(connection) == [
        ("action", "other", 1, 1, None),
        ("action", "tell", 1, 1, 2),
        ("action", "tell", 2, 2, None),
    ]
    assert (await events(connection))[1]["payload"]["documents"] == [
        {"kind": "action", "name": "tell", "version": 2, "outcome": "changed"}
    ]


async def test_a_document_that_a_file_leaves_out_stays(connection: Connection) -> None:
    await put(connection, action("tell") + rule("each", "tell"))
    await put(connection, action("other"))
    assert await known_names(connection) == {
        "action": frozenset({"tell", "other"}),
        "action_rule": frozenset({"each"}),
    }


async def test_a_name_of_two_kinds_is_two_documents(connection: Connection) -> None:
    assert await outcome(connection, action("same") + rule("same", "same")) == ["added", "added"]
    assert await outcome(connection, action("same", "other") + rule("same", "same")) == [
        "changed",
        "unchanged",
    ]


async def test_a_document_that_was_ended_comes_back_as_the_next_version(connection: Connection) -> None:
    await put(connection, action("tell"))
    await connection.execute("update tocsin.rule_version set until_seq = 1")
    assert await known_names(connection) == {}
    assert await outcome(connection, action("tell")) == ["added"]
    assert [version[2:] for version in await versions(connection)] == [(1, 1, 1), (2, 2, None)]


async def test_a_document_that_cannot_be_applied_leaves_nothing(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(connection, schedule("beat", extra="  owner: a\n"))
    before = [
        await rows(connection, table) for table in ("schedule", "timer", "event", "rule_version", "audit")
    ]

    async def refuse(connection: Connection, spec: ScheduleSpec, actor: Actor) -> Any:
        if spec.name == "refused":
            raise Refused(f"schedule {spec.name!r} cannot be put")
        return await put_schedule(connection, spec, actor)

    monkeypatch.setattr("rules.apply.schedules.put_schedule", refuse)
    text = action("tell") + schedule("beat", "20s") + schedule("new") + schedule("refused")
    with pytest.raises(Refused, match="refused"):
        await put(connection, text)
    assert before == [
        await rows(connection, table) for table in ("schedule", "timer", "event", "rule_version", "audit")
    ]


async def test_a_failure_after_the_append_leaves_nothing(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        def __call__(self, _: Any) -> Any:
            raise psycopg.DataError("broken")

    monkeypatch.setattr(transaction, "Jsonb", Broken())
    with pytest.raises(psycopg.DataError):
        await put(connection, action("tell") + schedule("beat"))
    monkeypatch.undo()
    assert await events(connection) == []
    assert await rows(connection, "schedule") == []
    assert (await put(connection, action("tell"))).seq == 1


async def test_concurrent_applies_run_one_after_the_other(settings: Settings, connection: Connection) -> None:
    async def one(number: int) -> list[str]:
        own = await connect(with_long_timeouts(settings), f"apply {number}")
        try:
            text = "".join(schedule(f"s{n}", f"{10 + number}s") for n in range(5)) + action("tell")
            return await outcome(own, text)
        finally:
            await own.close()

    results = await asyncio.gather(*(one(number) for number in range(6)))
    assert sorted(result[-1] for result in results) == ["added"] + ["unchanged"] * 5
    newest = [row for row in await rows(connection, "rule_version") if row["until_seq"] is None]
    assert len(newest) == 6
    assert {row["version"] for row in newest if row["kind"] == "schedule"} == {6}
    # Every schedule is as in the last apply: nothing is mixed.
    assert len({row["document"]["every"] for row in newest if row["kind"] == "schedule"}) == 1
    assert len({row["recurrence"]["every"] for row in await rows(connection, "schedule")}) == 1


async def test_an_apply_that_waits_too_long_for_another_is_rejected(
    settings: Settings, connection: Connection
) -> None:
    other = await connect(with_long_timeouts(settings), "other")
    try:
        async with other.transaction():
            await other.execute("select tocsin.lock_rules()")
            await connection.execute("set lock_timeout = '50ms'")
            with pytest.raises(Refused, match="could not get the locks: another apply is running"):
                await put(connection, action("tell"))
    finally:
        await other.close()


async def test_a_schedule_that_an_operator_paused_stays_paused_until_its_document_changes(
    connection: Connection,
) -> None:
    await put(connection, schedule("beat"))
    async with connection.transaction():
        await pause_schedule(connection, "", "beat", ACTOR)
    assert await outcome(connection, schedule("beat") + action("tell")) == ["unchanged", "added"]
    row = await find_schedule(connection, "", "beat")
    assert row is not None
    assert row["status"] == "paused"
    await put(connection, schedule("beat", "20s"), LATER)
    row = await find_schedule(connection, "", "beat")
    assert row is not None
    assert (row["status"], row["nominal_at"]) == ("active", LATER.now + timedelta(seconds=20))


async def test_a_schedule_that_an_operator_cancelled_stays_cancelled(connection: Connection) -> None:
    await put(connection, schedule("beat"))
    async with connection.transaction():
        await cancel_schedule(connection, "", "beat", ACTOR)
    assert await outcome(connection, schedule("beat")) == ["unchanged"]
    row = await find_schedule(connection, "", "beat")
    assert row is not None
    assert row["status"] == "cancelled"


async def test_a_missing_schedule_is_put_back_although_its_document_is_unchanged(
    connection: Connection,
) -> None:
    await put(connection, schedule("beat"))
    await connection.execute("delete from tocsin.timer; delete from tocsin.schedule")
    again = await put(connection, schedule("beat"), LATER)
    assert outcomes(again) == ["unchanged"]
    assert again.next_at == {("schedule", "beat"): LATER.now + timedelta(seconds=10)}


async def test_a_schedule_whose_owner_changed_ends_for_the_former_owner(connection: Connection) -> None:
    def of(owner: str) -> str:
        return schedule("beat", extra=f"  owner: {owner}\n")

    await put(connection, of("a"))
    assert await outcome(connection, of("b"), LATER) == ["changed"]
    assert [(row["owner"], row["status"]) for row in await rows(connection, "schedule", "owner")] == [
        ("a", "cancelled"),
        ("b", "active"),
    ]
    assert len(await rows(connection, "timer")) == 1
    await put(connection, of("a"), LATER)
    assert [(row["owner"], row["status"]) for row in await rows(connection, "schedule", "owner")] == [
        ("a", "active"),
        ("b", "cancelled"),
    ]


async def test_an_owner_may_change_when_the_former_schedule_is_deleted(connection: Connection) -> None:
    await put(connection, schedule("beat", extra="  owner: a\n"))
    await connection.execute("delete from tocsin.timer; delete from tocsin.schedule")
    assert await outcome(connection, schedule("beat", extra="  owner: b\n")) == ["changed"]


async def test_all_keys_of_a_schedule_are_stored(connection: Connection) -> None:
    extra = (
        "  owner: plant 7\n  spread: 2s\n  catch_up: all\n  window: 1h\n  grace: 3s\n  max_catch_up: 7\n"
        "  type: beat-done\n  payload: {k: [1, null]}\n  action: tell\n  enabled: false\n"
    )
    await put(connection, action("tell") + schedule("beat", extra=extra))
    row = await find_schedule(connection, "plant 7", "beat")
    assert row is not None
    assert (row["spread"], row["catch_up"], row["window"]) == (
        timedelta(seconds=2),
        "all",
        timedelta(hours=1),
    )
    assert (row["grace"], row["max_catch_up"], row["type"]) == (timedelta(seconds=3), 7, "beat-done")
    assert (row["payload"], row["action"], row["status"]) == ({"k": [1, None]}, "tell", "paused")
    assert row["source"] == "rules"
