"""Services schedule and cancel inside their own transactions, in SQL."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from clock.term import begin_term
from schemas.values.event_types import RESERVED_PREFIXES, RESERVED_TYPES, is_reserved
from tests.records import events
from tests.sessions import Sessions
from tests.sql import blocked
from tests.wait import eventually
from timers.schedule_spec import ScheduleSpec
from timers.schedules import find_schedule, list_schedules, put_schedule
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


async def test_the_locks_of_a_transaction_do_not_grow_with_what_it_schedules_and_cancels(
    connection: Connection,
) -> None:
    """With a lock for each schedule, 50,000 in one transaction exhaust the lock table of the server."""

    async with connection.transaction():
        await connection.execute(
            "select tocsin.schedule_once('svc', 'n' || n, '2031-03-02 08:00Z') from generate_series(1, 1000) n"
        )
        assert await call(connection, "select tocsin.schedule_cancel_all(owner => 'svc')") == 1000
        for number in range(100):
            spec = ScheduleSpec(f"put-{number}", {"cron": "0 9 * * *", "tz": "Europe/Berlin"})
            await put_schedule(connection, spec, Actor("tester", "test", T0))
        # The tables and indexes that the functions use.
        assert await call(connection, "select count(*) < 50 from pg_locks where pid = pg_backend_pid()")


async def test_of_two_services_that_schedule_the_same_the_second_waits_and_is_a_duplicate(
    connection: Connection, sessions: Sessions, watch: Connection
) -> None:
    other = await sessions("other")
    async with connection.transaction():
        first = await once(connection, "remind", LATER)
        second = asyncio.create_task(once(other, "remind", LATER))
        await eventually(lambda: blocked(watch, other), "the second waits for the first")
    assert ((await second)["id"], (await second)["deduped"]) == (first["id"], True)


async def test_in_repeatable_read_a_race_is_a_serialization_failure(
    connection: Connection, sessions: Sessions
) -> None:
    other = await sessions("other")
    await other.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)

    async def lose_the_race() -> None:
        async with other.transaction():
            await other.execute("select 1")
            await once(connection, "remind", LATER)
            await once(other, "remind", LATER)

    with pytest.raises(psycopg.errors.SerializationFailure):
        await lose_the_race()
    assert (await once(other, "remind", LATER))["deduped"]


@pytest.mark.parametrize(
    "payload", ["[1, 2]", "null", "17", '"text"', '{"x": 1e5000}', '{"x": [{"y": -1e5000}]}', None]
)
@pytest.mark.parametrize(
    "call",
    [
        "select tocsin.schedule_once('svc', 'remind', '2031-03-02 08:00Z', %s::jsonb)",
        "select tocsin.arm('runbook-wait', 'ref', 'key', '2031-03-02 08:00Z', %s::jsonb)",
    ],
)
async def test_a_payload_that_no_service_can_read_is_refused(
    connection: Connection, call: str, payload: str | None
) -> None:
    with pytest.raises(
        psycopg.Error, match="no JSON object, or has a number of more than 4300 digits"
    ) as error:
        await connection.execute(call.encode(), (payload,))
    assert error.value.sqlstate == "TS002"


async def test_a_long_text_of_digits_is_a_payload(connection: Connection) -> None:
    payload = {"x": "1" * 5000, "y": 10**4000}
    await once(connection, "remind", LATER, payload)
    assert [row["payload"] for row in await list_schedules(connection)] == [payload]


async def test_no_writer_can_store_a_schedule_that_breaks_the_list(connection: Connection) -> None:
    await once(connection, "remind", LATER)
    for column in ("payload", "recurrence"):
        with pytest.raises(psycopg.errors.CheckViolation):
            await connection.execute(f"update tocsin.schedule set {column} = '[]'".encode())
        with pytest.raises(psycopg.errors.CheckViolation):
            await connection.execute(f"""update tocsin.schedule set {column} = '{{"x": 1e5000}}'""".encode())
    assert len(await list_schedules(connection)) == 1


@pytest.mark.parametrize("type", ["alarm-resolved", "silence-ended", "log-pruned", "schedule-missed"])
async def test_a_service_cannot_schedule_an_event_of_a_reserved_type(
    connection: Connection, type: str
) -> None:
    with pytest.raises(psycopg.Error, match="is reserved for events of tocsin itself") as error:
        await connection.execute(
            "select tocsin.schedule_once('svc', 'remind', '2031-03-02 08:00Z', type => %s)", (type,)
        )
    assert error.value.sqlstate == "TS002"
    await connection.execute("select tocsin.schedule_once('svc', 'remind', '2031-03-02 08:00Z')")
    with pytest.raises(psycopg.Error, match="is reserved"):
        await connection.execute("update tocsin.schedule set type = %s", (type,))


async def test_sql_and_python_reserve_the_same_types(connection: Connection) -> None:
    types = [f"{prefix}x" for prefix in RESERVED_PREFIXES] + sorted(RESERVED_TYPES) + ["order-x", "alarmed"]
    cursor = await connection.execute(
        "select t, tocsin.is_reserved_type(t) from unnest(%s::text[]) as t", (types,)
    )
    assert dict(await cursor.fetchall()) == {type: is_reserved(type) for type in types}
