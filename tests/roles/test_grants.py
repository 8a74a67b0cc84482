"""The rights of every role: the decision, the database and the script for operators agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrations.roles.check import check_roles
from migrations.roles.create import create_roles
from migrations.roles.script import script
from tests.roles.owned_database import OWNER, as_role
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

_SCRIPT = Path(__file__).parents[2] / "deploy/postgres/roles.sql"


async def test_every_object_of_the_schema_has_its_decided_rights(connection: Connection) -> None:
    assert await check_roles(connection) == []


def test_the_script_for_operators_has_the_decided_rights() -> None:
    assert _SCRIPT.read_text() == script(), "run `python -m migrations.roles`"


async def test_an_owner_who_may_create_roles_gives_them_their_rights_again(owned: Settings) -> None:
    owner = await as_role(owned, OWNER)
    await create_roles(owner)
    await create_roles(owner)
    assert await check_roles(owner) == []
    await owner.close()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("grant update on tocsin.audit to tocsin_worker", "tocsin_worker has update on table 'audit'"),
        ("revoke select on tocsin.event from tocsin_cdc", "tocsin_cdc lacks select on table 'event'"),
        ("grant select on tocsin.event to public", "PUBLIC has select on table 'event'"),
        ("create table tocsin.forgotten ()", "no grants are decided for table 'forgotten'"),
        (
            "grant execute on function tocsin.adopt to tocsin_client",
            "tocsin_client may execute function 'adopt'",
        ),
        (
            "revoke execute on function tocsin.append from tocsin_clock",
            "tocsin_clock may not execute function 'append'",
        ),
        (
            "alter function tocsin.write_audit reset search_path",
            "function 'write_audit' runs as the owner with the search path of its caller",
        ),
        ("alter table tocsin.event disable row level security", "table 'event' has no row security"),
    ],
)
async def test_the_check_reports_a_difference(connection: Connection, change: str, problem: str) -> None:
    await connection.execute(change.encode())
    assert problem in await check_roles(connection)
