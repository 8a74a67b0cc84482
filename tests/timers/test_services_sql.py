"""Services schedule and cancel inside their own transactions, in SQL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from clock.term import begin_term
from tests.records import events
from timers.schedule_spec import ScheduleSpec
from timers.schedules import find_schedule, put_schedule
from tocsin.core.audit import Actor
from tocsin.core.db import Connection

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
LATER = datetime(2031, 3, 2, 8, 0, 0, 250_000, tzinfo=UTC)


async def once(connection: Connection, name: str, at: datetime, payload: object = None) -> dict[str, Any]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            "select * from tocsin.schedule_once('svc', %s, %s, %s)", (name, at, Jsonb(payload or {}))
        )
        row = await cursor.fetchone()
    assert row is not None
    return row


async def test_a_service_schedules_once_and_the_payload_comes_back_verbatim(connection: Connection) -> None:
    payload = {"order": 17, "nested": {"b": [1.5, None, "ü"], "a": True}}
    row = await once(connection, "remind", LATER, payload)
    assert (row["status"], row["generation"], row["deduped"], row["fire_at"]) == ("active", 1, False, LATER)

    term = await begin_term(connection, "test")
    assert (await term.run_once(LATER)).fires == 1

    (event,) = await events(connection)
    assert (event["owner"], event["schedule"], event["ts"], event["payload"]) == (
        "svc",
        "remind",
        LATER,
        payload,
    )
    stored = await find_schedule(connection, "svc", "remind")
    assert stored is not None
    assert stored["status"] == "fired"


async def test_scheduling_the_same_again_returns_that_it_is_a_duplicate(connection: Connection) -> None:
    first = await once(connection, "remind", LATER)
    again = await once(connection, "remind", LATER)
    assert (again["id"], again["deduped"], again["fire_at"]) == (first["id"], True, LATER)


async def test_the_same_key_with_other_content_is_an_error_that_shows_the_difference(
    connection: Connection,
) -> None:
    await once(connection, "remind", LATER)
    with pytest.raises(psycopg.Error, match=r"at is 2031-03-02T08:00:00\.250000Z, not 2032-") as error:
        await once(connection, "remind", LATER.replace(year=2032))
    assert error.value.sqlstate == "TS004"
    with pytest.raises(psycopg.Error, match="the payload differs"):
        await once(connection, "remind", LATER, {"k": 1})


async def test_sql_and_python_store_the_same_schedule(connection: Connection) -> None:
    for number, at in enumerate((LATER, datetime(2031, 3, 2, 8, 0, tzinfo=UTC))):
        await once(connection, f"sql-{number}", at)
        text = at.isoformat().replace("+00:00", "Z")
        spec = ScheduleSpec(f"python-{number}", {"at": text}, owner="svc")
        await put_schedule(connection, spec, Actor("tester", "test", T0))
        rows = [await find_schedule(connection, "svc", f"{by}-{number}") for by in ("sql", "python")]
        assert rows[0] is not None
        assert rows[1] is not None
        assert rows[0]["recurrence"] == rows[1]["recurrence"]


async def test_an_instant_in_the_past_is_due_at_once_and_keeps_its_nominal_time(
    connection: Connection,
) -> None:
    row = await once(connection, "late", T0)
    assert row["fire_at"] > T0
    term = await begin_term(connection, "test")
    assert (await term.run_once(row["fire_at"])).fires == 1
    (event,) = await events(connection)
    assert event["ts"] == T0


async def test_a_rolled_back_transaction_schedules_nothing(connection: Connection) -> None:
    async with connection.transaction(force_rollback=True):
        await once(connection, "never", LATER)
    assert await find_schedule(connection, "svc", "never") is None
    term = await begin_term(connection, "test")
    assert (await term.run_once(LATER)).timers == 0


async def call(connection: Connection, query: str) -> object:
    row = await (await connection.execute(query.encode())).fetchone()
    assert row is not None
    return row[0]


async def test_schedules_are_cancelled_by_name_by_owner_and_by_type(connection: Connection) -> None:
    for name in ("a", "b", "c"):
        await once(connection, name, LATER)
    assert await call(connection, "select tocsin.schedule_cancel('svc', 'a')") is True
    assert await call(connection, "select tocsin.schedule_cancel('svc', 'a')") is False
    assert await call(connection, "select tocsin.schedule_cancel('svc', 'missing')") is False
    assert await call(connection, "select tocsin.schedule_cancel_all(type => 'other')") == 0
    assert await call(connection, "select tocsin.schedule_cancel_all(owner => 'svc')") == 2
    term = await begin_term(connection, "test")
    assert (await term.run_once(LATER + timedelta(days=1))).timers == 0
    verbs = await (
        await connection.execute("select name, verb, new->>'status' from tocsin.audit order by id")
    ).fetchall()
    assert {row[0] for row in verbs[-3:]} == {"a", "b", "c"}
    assert all(row[1:] == ("cancel", "cancelled") for row in verbs[-3:])


async def test_cancelling_everything_by_accident_is_refused(connection: Connection) -> None:
    with pytest.raises(psycopg.Error, match="name an owner or a type"):
        await call(connection, "select tocsin.schedule_cancel_all()")
