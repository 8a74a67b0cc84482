"""What each role may not do. The exploits of the review, as the role that a service logs in with."""

from __future__ import annotations

from collections.abc import AsyncIterator

import psycopg
import pytest

from tests.roles.owned_database import as_role
from tests.sql import all_rows, one_row
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

AN_EVENT = "insert into tocsin.event (seq, type) values (1, 'forged')"
A_RULE = "insert into tocsin.rule_version (kind, name) values ('channel', 'x')"
A_GRANT = "insert into tocsin.owner_grant (grantee, pattern) values (session_user, '*')"
A_TIMER = "delete from tocsin.timer"
AN_EPOCH = "select tocsin.raise_epoch(1, 'x', 1, now())"
A_GAP = "select tocsin.record_gap(1, 2, 'x', 'x')"
REFUSED = {
    "tocsin_clock": [AN_EVENT, A_RULE, A_GRANT, "insert into tocsin.datapoint (owner) values ('x')"],
    "tocsin_cdc": [AN_EVENT, A_RULE, A_GRANT, A_TIMER, AN_EPOCH, "update tocsin.alarm set state = 'open'"],
    "tocsin_worker": [AN_EVENT, A_RULE, A_GRANT, AN_EPOCH, "delete from tocsin.rule_version"],
    "tocsin_author": [AN_EVENT, A_GRANT, AN_EPOCH, "delete from tocsin.schedule"],
    "tocsin_operator": [AN_EVENT, A_RULE, A_GRANT, AN_EPOCH],
    "tocsin_api": [AN_EVENT, A_GRANT, AN_EPOCH],
    "tocsin_client": [AN_EVENT, A_RULE, A_GRANT, A_TIMER, AN_EPOCH, A_GAP, "select from tocsin.schedule"],
    "tocsin_reader": [AN_EVENT, A_RULE, A_GRANT, A_TIMER, AN_EPOCH, "select from tocsin.audit"],
}
SCHEDULE = "select tocsin.schedule_once(owner => %s, name => 'remind', at => now() + interval '1 hour')"


@pytest.fixture
async def client(settings: Settings, connection: Connection) -> AsyncIterator[Connection]:
    """A session of a service that may use the owner `orders`."""
    await connection.execute(
        "insert into tocsin.owner_grant (grantee, pattern) values ('tocsin_client', 'orders')"
    )
    session = await as_role(settings, "tocsin_client")
    yield session
    await session.close()


@pytest.mark.parametrize(
    ("role", "attempt"), [(role, each) for role, many in REFUSED.items() for each in many]
)
async def test_a_role_is_refused_what_it_does_not_need(settings: Settings, role: str, attempt: str) -> None:
    session = await as_role(settings, role)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        await session.execute(attempt.encode())
    await session.close()


async def test_a_client_schedules_for_its_owners_only(client: Connection, connection: Connection) -> None:
    await client.execute(SCHEDULE, ("orders",))
    for owner in ("payroll", "orders-2", "", "tocsin:x"):
        with pytest.raises(psycopg.DatabaseError, match="has no grant for owner") as refused:
            await client.execute(SCHEDULE, (owner,))
        assert refused.value.sqlstate == "TS006"
    rows = await all_rows(connection, "select owner, created_by from tocsin.schedule")
    assert rows == [{"owner": "orders", "created_by": "tocsin_client"}]


async def test_a_client_cancels_schedules_of_its_owners_only(
    client: Connection, connection: Connection
) -> None:
    for owner in ("orders", "payroll"):
        await connection.execute(SCHEDULE, (owner,))
    ids = {
        row["owner"]: row["id"] for row in await all_rows(connection, "select owner, id from tocsin.schedule")
    }
    cancel = "select tocsin.schedule_cancel(owner => 'payroll', name => 'remind', who => 'alice@corp')"
    with pytest.raises(psycopg.DatabaseError, match="has no grant for owner 'payroll'"):
        await client.execute(cancel.encode())
    with pytest.raises(psycopg.DatabaseError, match="has no grant for owner 'payroll'"):
        await client.execute("select tocsin.schedule_cancel_id(%s)", (ids["payroll"],))
    await client.execute("select tocsin.schedule_cancel_all(type => 'schedule-fired')")
    rows = await all_rows(connection, "select owner, status from tocsin.schedule order by owner")
    assert [(row["owner"], row["status"]) for row in rows] == [("orders", "cancelled"), ("payroll", "active")]
    audited = await one_row(connection, "select who, claimed from tocsin.audit where verb = 'cancel'")
    assert audited["who"] == "tocsin_client"


async def test_a_client_does_not_hide_a_function_behind_its_own(client: Connection) -> None:
    """A definer function uses none of the objects that the caller puts first in its search path."""
    await client.execute(
        "create function pg_temp.require_owner(owner text) returns void language sql as 'select'"
    )
    await client.execute("set search_path = pg_temp, tocsin")
    with pytest.raises(psycopg.DatabaseError, match="has no grant for owner"):
        await client.execute(SCHEDULE, ("payroll",))


async def test_a_reader_sees_the_rows_of_its_owners_only(settings: Settings, connection: Connection) -> None:
    for owner in ("orders", "payroll"):
        await connection.execute(SCHEDULE, (owner,))
    reader = await as_role(settings, "tocsin_reader")
    assert await all_rows(reader, "select owner from tocsin.schedule") == []
    await connection.execute(
        "insert into tocsin.owner_grant (grantee, pattern) values ('tocsin_reader', 'or*')"
    )
    assert await all_rows(reader, "select owner from tocsin.schedule") == [{"owner": "orders"}]
    await reader.close()
