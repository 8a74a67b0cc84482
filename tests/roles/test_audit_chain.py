"""The audit: who and when are those of the server, and a change of a row is detected."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from clock.service import Clock
from clock.time_source import wall_now
from tests.roles.owned_database import as_role
from tests.sql import all_rows, one_row
from tests.wait import eventually
from tocsin.core.audit import Actor, acting, record_audit
from tocsin.core.audit_chain import verify_chain
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings
from tocsin.doctor.role_checks import check_rights

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
FORGED = Actor("alice@corp", "web console", LONG_AGO)


async def written(connection: Connection, rows: int = 3) -> None:
    for number in range(rows):
        await record_audit(connection, FORGED, "edit", "schedule", f"job-{number}", old={}, new={"n": number})
    await connection.execute("select tocsin.seal_audit()")


async def tamper(connection: Connection, statement: str) -> None:
    """What a superuser can do: write behind the guard."""
    async with connection.transaction():
        await connection.execute("set local session_replication_role = replica")
        await connection.execute(statement.encode())


async def test_time_and_principal_of_a_row_are_those_of_the_server(settings: Settings) -> None:
    operator = await as_role(settings, "tocsin_operator")
    await record_audit(operator, FORGED, "edit", "schedule", "job")
    row = await one_row(operator, "select at, who, claimed from tocsin.audit")
    assert (row["who"], row["claimed"]) == ("tocsin_operator", "alice@corp")
    assert abs(row["at"] - wall_now()) < timedelta(hours=1)
    assert (await acting(operator, "alice@corp", "cli")).who == "tocsin_operator"
    await operator.close()


@pytest.mark.parametrize(
    "role", ["tocsin_clock", "tocsin_cdc", "tocsin_worker", "tocsin_author", "tocsin_operator", "tocsin_api"]
)
async def test_no_component_writes_the_audit_or_its_chain_directly(
    settings: Settings, connection: Connection, role: str
) -> None:
    await written(connection)
    session = await as_role(settings, role)
    for attempt in (
        "insert into tocsin.audit (at, who, via, verb, kind, name) values (now(), 'x', 'x', 'x', 'x', 'x')",
        "update tocsin.audit set who = 'x'",
        "delete from tocsin.audit",
        "truncate tocsin.audit",
        "update tocsin.audit_seal set hash = ''",
        "delete from tocsin.audit_seal",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await session.execute(attempt.encode())
    await session.close()
    assert (await verify_chain(connection)).problems == []


async def test_an_unchanged_audit_is_verified(connection: Connection) -> None:
    await written(connection)
    report = await verify_chain(connection)
    assert (report.checked, report.unsealed, report.position, report.problems) == (3, 0, 3, [])
    assert (await verify_chain(connection, (3, report.hash))).problems == []
    newest = await verify_chain(connection, newest=2)
    assert (newest.checked, newest.hash, newest.problems) == (2, report.hash, [])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("update tocsin.audit set who = 'bob' where id = 2", "row 2 of the audit was changed"),
        ("update tocsin.audit set at = at - interval '1 day' where id = 2", "row 2 of the audit was changed"),
        ("""update tocsin.audit set new = '{"n": 9}' where id = 2""", "row 2 of the audit was changed"),
        ("delete from tocsin.audit where id = 2", "row 2 of the audit is missing"),
        ("update tocsin.audit_seal set digest = '' where position = 2", "link 2 was changed"),
        ("delete from tocsin.audit_seal where position = 2", "links 2 to 2 are missing"),
        (
            "update tocsin.audit_seal set previous = '', hash = sha256(digest) where position = 2",
            "link 2 does not follow the one before it",
        ),
    ],
)
async def test_a_change_behind_the_guard_is_detected(
    connection: Connection, change: str, problem: str
) -> None:
    await written(connection)
    await tamper(connection, change)
    assert problem in (await verify_chain(connection)).problems
    found = {finding.subject: finding.state for finding in await check_rights(connection)}
    assert found["audit"] == "red"


async def test_a_shortened_chain_is_detected_by_a_head_that_was_kept(connection: Connection) -> None:
    await written(connection)
    report = await verify_chain(connection)
    await tamper(connection, "delete from tocsin.audit_seal where position = 3")
    await tamper(connection, "delete from tocsin.audit where id = 3")
    assert (await verify_chain(connection)).problems == []
    (problem,) = (await verify_chain(connection, (3, report.hash))).problems
    assert problem == f"the chain does not have the hash {report.hash} at position 3"


async def test_retention_leaves_a_chain_that_is_verified(settings: Settings, connection: Connection) -> None:
    await written(connection, 5)
    clock = await as_role(settings, "tocsin_clock")
    removed = await all_rows(clock, "select tocsin.prune_audit(array[1, 2, 4]) as id")
    assert sorted(row["id"] for row in removed) == [1, 2, 4]
    report = await verify_chain(connection)
    assert (report.checked, report.position, report.problems) == (3, 5, [])
    await clock.close()


async def test_an_open_transaction_delays_only_its_own_row(
    settings: Settings, connection: Connection
) -> None:
    """Ids are taken before the commit: a row that commits late is chained after newer ones."""
    late = await as_role(settings, "tocsin_operator")
    async with late.transaction():
        await record_audit(late, FORGED, "edit", "schedule", "late")
        await written(connection, 1)
    assert (await verify_chain(connection)).unsealed == 1
    await connection.execute("select tocsin.seal_audit()")
    report = await verify_chain(connection)
    assert (report.checked, report.unsealed, report.problems) == (2, 0, [])
    await late.close()


async def test_the_clock_chains_the_audit(settings: Settings, connection: Connection) -> None:
    await record_audit(connection, FORGED, "edit", "schedule", "job")
    async with running(Service("clock", Clock(settings).run)):

        async def is_chained() -> bool:
            return (await verify_chain(connection)).checked == 1

        await eventually(is_chained, "the clock chains the row", within=60)
