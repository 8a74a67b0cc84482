"""Silences in the database: added, listed, expired and ended, with their events and audit rows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from clock.term import begin_term
from rules.language.cel import ExpressionInvalid
from rules.suppression import operator as suppression_operator
from rules.suppression.operator import add_silence, expire_silence
from rules.suppression.silence_store import NewSilence, find_silence, list_silences, read_silences
from schemas.fields import MAX_REASON_LENGTH, MAX_SILENCE
from schemas.wire.silence_events import SILENCE_OWNER, silence_of_payload
from tests.clock.clock_setup import at, drain
from tests.records import events
from tests.sql import all_rows
from timers.schedules import cancel_schedule, list_schedules, pause_schedule
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.errors import InvalidInput, Refused

ANN = Actor("ann", "test", at(0))


def silence(begins_s: float = 0, ends_s: float = 100, matcher: str = 'owner == "plant-7"') -> NewSilence:
    return NewSilence(matcher, at(begins_s), at(ends_s), "fan swap", "ann")


async def be_at(connection: Connection, seconds: float) -> None:
    await connection.execute("select set_config('tocsin.now', %s, false)", (at(seconds).isoformat(),))


@pytest.fixture(autouse=True)
async def begin(connection: Connection) -> None:
    await be_at(connection, 0)


async def test_a_silence_has_an_event_and_an_audit_row(connection: Connection) -> None:
    added = silence()
    assert await add_silence(connection, added, ANN) == 1
    (event,) = await events(connection)
    assert (event["origin"], event["type"], event["owner"]) == ("caused", "silence-added", SILENCE_OWNER)
    assert silence_of_payload(event["payload"]) == added.facts
    assert (event["payload"]["who"], event["payload"]["via"]) == ("ann", "test")
    (audited,) = await all_rows(connection, "select who, via, verb, kind, name, new from tocsin.audit")
    assert (audited["who"], audited["verb"], audited["kind"]) == ("ann", "add", "silence")
    assert (audited["name"], audited["new"]["reason"]) == (str(added.id), "fan swap")


async def test_a_silence_is_in_force_from_its_start_to_its_end(connection: Connection) -> None:
    added = silence(10, 20)
    await add_silence(connection, added, ANN)
    in_force = []
    for seconds in (9, 10, 19, 20):
        await be_at(connection, seconds)
        in_force.append(len(await read_silences(connection)))
    assert in_force == [0, 1, 1, 0]


async def test_the_clock_ends_a_silence_at_its_time(connection: Connection) -> None:
    added = silence(0, 50)
    await add_silence(connection, added, ANN)
    term = await begin_term(connection, "clock")
    await drain(term, at(49))
    assert len(await events(connection)) == 1
    await drain(term, at(51))
    _, ended = await events(connection)
    assert (ended["type"], ended["origin"], ended["ts"]) == ("silence-ended", "scheduled", at(50))
    assert silence_of_payload(ended["payload"]) == added.facts


async def test_an_expired_silence_ends_once(connection: Connection) -> None:
    added = silence()
    await add_silence(connection, added, ANN)
    row = await find_silence(connection, str(added.id)[:8])
    assert await expire_silence(connection, row, Actor("bob", "test", at(10))) == 2
    assert await read_silences(connection) == []
    assert await list_silences(connection) == []
    (ended,) = await list_silences(connection, all=True)
    assert ended["ended_at"] == at(10)
    event = (await events(connection))[-1]
    assert (event["type"], event["origin"], event["payload"]["who"]) == ("silence-ended", "caused", "bob")
    with pytest.raises(Refused, match="ended at 2026"):
        await expire_silence(connection, row, Actor("bob", "test", at(11)))
    term = await begin_term(connection, "clock")
    await drain(term, at(200))
    assert len(await events(connection)) == 2


@pytest.mark.parametrize(
    ("begins_s", "ends_s", "message"),
    [
        (-20, -10, "would end in the past"),
        (20, 10, "before it starts"),
        (0, MAX_SILENCE.total_seconds() + 1, "366 days at most"),
        (MAX_SILENCE.total_seconds() + 1, MAX_SILENCE.total_seconds() + 2, "start it within 366 days"),
    ],
)
async def test_a_silence_lies_in_the_future_and_is_bounded(
    connection: Connection, begins_s: float, ends_s: float, message: str
) -> None:
    with pytest.raises(InvalidInput) as error:
        await add_silence(connection, silence(begins_s, ends_s), ANN)
    assert message in f"{error.value} {error.value.remedy}"
    assert await events(connection) == []


async def test_a_wrong_matcher_and_a_long_reason_are_rejected(connection: Connection) -> None:
    with pytest.raises(ExpressionInvalid, match="did you mean 'owner'"):
        await add_silence(connection, silence(matcher='ownr == "x"'), ANN)
    too_long = NewSilence("true", at(0), at(1), "x" * (MAX_REASON_LENGTH + 1), "ann")
    with pytest.raises(InvalidInput, match="1001 characters"):
        await add_silence(connection, too_long, ANN)


async def test_the_number_of_active_silences_is_bounded(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suppression_operator, "MAX_ACTIVE_SILENCES", 2)
    await add_silence(connection, silence(), ANN)
    await add_silence(connection, silence(), ANN)
    with pytest.raises(Refused, match="2 silences are active"):
        await add_silence(connection, silence(), ANN)
    await be_at(connection, 101)
    await add_silence(connection, silence(101, 200), Actor("ann", "test", at(101)))


async def test_schedules_of_silences_are_not_listed_or_changed_as_schedules(connection: Connection) -> None:
    added = silence()
    await add_silence(connection, added, ANN)
    assert await list_schedules(connection) == []
    assert [row["name"] for row in await list_schedules(connection, owner=SILENCE_OWNER)] == [str(added.id)]
    changes: tuple[Any, ...] = (pause_schedule, cancel_schedule)
    for change in changes:
        with pytest.raises(InvalidInput, match="reserved"):
            await change(connection, SILENCE_OWNER, str(added.id), ANN)
    await connection.execute("select tocsin.schedule_cancel_all('')")
    term = await begin_term(connection, "clock")
    await drain(term, at(0) + timedelta(seconds=200))
    assert [event["type"] for event in await events(connection)] == ["silence-added", "silence-ended"]
