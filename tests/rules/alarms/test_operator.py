"""Acknowledging and snoozing are recorded once each; neither changes the state of an alarm."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from clock.term import begin_term
from rules.alarms.operator import MAX_NOTE_LENGTH, OperatorResult, acknowledge, snooze
from rules.alarms.queries import find_alarm, list_alarms
from schemas.fields import MAX_SNOOZE
from tests.clock.alarms import ALARM, CAUSE, alarm_row, hold_alarm, read_until, timers
from tests.clock.clock_setup import at, drain
from tests.records import events
from tests.sessions import Sessions
from tests.sql import all_rows
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.errors import InvalidInput, Refused

BOB = Actor("bob", "test", at(100))
ANN = Actor("ann", "test", at(101))


@pytest.fixture
async def alarm(connection: Connection) -> dict[str, Any]:
    await connection.execute("select set_config('tocsin.now', %s, false)", (at(0).isoformat(),))
    await read_until(connection, at(1000))
    await hold_alarm(connection, "open")
    return await find_alarm(connection, str(ALARM))


async def test_an_acknowledgement_has_an_event_and_an_audit_row(
    connection: Connection, alarm: dict[str, Any]
) -> None:
    assert await acknowledge(connection, alarm, BOB, "on it") == OperatorResult(True, 1)
    row = await alarm_row(connection)
    assert (row["state"], row["acknowledged_at"], row["acknowledged_by"]) == ("open", at(100), "bob")
    assert row["acknowledged_note"] == "on it"
    (event,) = await events(connection)
    assert (event["origin"], event["type"], event["alarm_id"]) == ("caused", "alarm-acknowledged", ALARM)
    assert (event["rule"], event["owner"], event["severity"]) == ("dsp-hot", "plant-7", 4)
    assert event["correlation_id"] == CAUSE
    assert {name: event["payload"][name] for name in ("who", "via", "note")} == {
        "who": "bob",
        "via": "test",
        "note": "on it",
    }
    (audited,) = await all_rows(connection, "select who, verb, kind, name from tocsin.audit")
    assert audited == {"who": "bob", "verb": "acknowledge", "kind": "alarm", "name": "dsp-hot"}


async def test_the_first_acknowledgement_stays(connection: Connection, alarm: dict[str, Any]) -> None:
    await acknowledge(connection, alarm, BOB)
    assert await acknowledge(connection, alarm, ANN, "me too") == OperatorResult(False, None)
    assert (await alarm_row(connection))["acknowledged_by"] == "bob"
    assert len(await events(connection)) == 1


async def test_many_acknowledgements_at_once_are_one(
    connection: Connection, alarm: dict[str, Any], sessions: Sessions
) -> None:
    operators = [await sessions(f"operator {number}") for number in range(4)]
    results = await asyncio.gather(*(acknowledge(session, alarm, BOB) for session in operators))
    assert sorted(result.changed for result in results) == [False, False, False, True]
    assert len(await events(connection)) == 1


async def test_only_an_open_alarm_can_be_acknowledged_or_snoozed(
    connection: Connection, alarm: dict[str, Any]
) -> None:
    await connection.execute("update tocsin.alarm set state = 'resolved'")
    with pytest.raises(Refused, match="is resolved: only an open alarm can be acknowledged"):
        await acknowledge(connection, alarm, BOB)
    with pytest.raises(Refused, match="is resolved: only an open alarm can be snoozed"):
        await snooze(connection, alarm, BOB, at(200))
    assert await events(connection) == []
    assert await timers(connection) == []


async def test_a_note_that_cannot_be_kept_is_refused(connection: Connection, alarm: dict[str, Any]) -> None:
    for note in ("x" * (MAX_NOTE_LENGTH + 1), "a\0b"):
        with pytest.raises(InvalidInput, match="the note has"):
            await acknowledge(connection, alarm, BOB, note)


async def test_a_snooze_ends_by_itself_with_an_event(connection: Connection, alarm: dict[str, Any]) -> None:
    assert await snooze(connection, alarm, BOB, at(200)) == OperatorResult(True, 1)
    assert (await alarm_row(connection))["snoozed_until"] == at(200)
    term = await begin_term(connection, "test")
    await drain(term, at(199))
    assert (await alarm_row(connection))["snoozed_until"] == at(200)
    await drain(term, at(200))
    row = await alarm_row(connection)
    assert (row["state"], row["snoozed_until"]) == ("open", None)
    assert [event["type"] for event in await events(connection)] == ["alarm-snoozed", "alarm-snooze-ended"]


async def test_a_longer_snooze_moves_the_end(connection: Connection, alarm: dict[str, Any]) -> None:
    await snooze(connection, alarm, BOB, at(200))
    await snooze(connection, alarm, ANN, at(300))
    (timer,) = await timers(connection)
    assert timer["nominal_at"] == at(300)
    assert (await alarm_row(connection))["snoozed_by"] == "ann"


async def test_a_snooze_can_be_ended(connection: Connection, alarm: dict[str, Any]) -> None:
    await snooze(connection, alarm, BOB, at(200))
    await snooze(connection, alarm, BOB, None)
    assert (await alarm_row(connection))["snoozed_until"] is None
    assert await timers(connection) == []
    assert [event["type"] for event in await events(connection)] == ["alarm-snoozed", "alarm-unsnoozed"]


@pytest.mark.parametrize("until", [at(100), at(99), at(101) + MAX_SNOOZE])
async def test_a_snooze_must_end_within_a_year(
    connection: Connection, alarm: dict[str, Any], until: Any
) -> None:
    with pytest.raises(InvalidInput, match="is not within the next 366 days"):
        await snooze(connection, alarm, BOB, until)


async def test_an_alarm_is_found_by_the_beginning_of_its_id(
    connection: Connection, alarm: dict[str, Any]
) -> None:
    assert (await find_alarm(connection, "AAAAAAAA"))["id"] == ALARM
    with pytest.raises(Refused, match="there is no alarm 'bbbb'"):
        await find_alarm(connection, "bbbb")
    for wrong in ("aaa", "%%%%", "not-an-id"):
        with pytest.raises(InvalidInput, match="is not the id of an alarm"):
            await find_alarm(connection, wrong)
    await hold_alarm(
        connection, "open", alarm=uuid.UUID("aaaaaaaa-1111-4000-8000-000000000001"), owner="other"
    )
    with pytest.raises(InvalidInput, match="begins the ids of several"):
        await find_alarm(connection, "aaaaaaaa")


async def test_alarms_are_listed_by_severity_and_filtered(
    connection: Connection, alarm: dict[str, Any]
) -> None:
    low = uuid.UUID("bbbbbbbb-1111-4000-8000-000000000001")
    await hold_alarm(connection, alarm=low, owner="other")
    await connection.execute("update tocsin.alarm set severity = 1, since = %s where id = %s", (at(9), low))
    assert [row["id"] for row in await list_alarms(connection)] == [ALARM, low]
    assert [row["id"] for row in await list_alarms(connection, states=("pending",))] == [low]
    assert [row["id"] for row in await list_alarms(connection, min_severity=2)] == [ALARM]
    assert [row["id"] for row in await list_alarms(connection, owner="other")] == [low]
    assert await list_alarms(connection, rule="nope") == []
    assert len(await list_alarms(connection, limit=1)) == 1
