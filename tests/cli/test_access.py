"""Commands ask the policy: what a session may do follows from its role in Postgres."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from tests.cli.conftest import CommandLine
from tests.paths import ROOT
from tests.sql import all_rows
from tocsin.cli.access import session_principal
from tocsin.core.db import Connection, connect
from tocsin.core.settings import Settings
from tocsin.policy import AccessRole, Grant, Operation, decide

# What sends to NATS has the permissions of its NATS user; what reads has the rights of its role in Postgres.
_NOT_OF_COMMANDS = {
    *(operation for operation in Operation if operation.startswith("view-")),
    *(Operation.SEND_DATA, Operation.EMIT_EVENT),
    *(Operation.CHECK_RULES, Operation.PLAN_RULES, Operation.TEST_RULES),
}


def test_every_operation_that_changes_something_is_asked_for_by_a_command() -> None:
    asked = set()
    for path in (ROOT / "tocsin" / "cli").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "Operation"
            ):
                asked.add(Operation[node.attr])
    assert set(Operation) - asked == _NOT_OF_COMMANDS


@pytest.mark.parametrize(
    ("role", "grants"),
    [
        ("tocsin_operator", {AccessRole.OPERATOR}),
        ("tocsin_author", {AccessRole.AUTHOR, AccessRole.APPROVER}),
        ("tocsin_reader", {AccessRole.VIEWER}),
        ("tocsin_worker", set()),
        ("tocsin_client", set()),
        ("tocsin_api", {AccessRole.ADMIN}),
        ("", {AccessRole.ADMIN}),
    ],
)
async def test_the_role_of_the_session_is_the_principal(
    settings: Settings, connection: Connection, role: str, grants: set[AccessRole]
) -> None:
    await connection.execute(
        "insert into tocsin.owner_grant (grantee, pattern) values ('tocsin_reader', 'plant-*')"
    )
    postgres = make_conninfo(settings.postgres, user=role) if role else settings.postgres
    session = await connect(settings.model_copy(update={"postgres": postgres}), "test")
    principal = await session_principal(session)
    await session.close()
    assert {grant.role for grant in principal.grants} == grants
    patterns = {grant.pattern for grant in principal.grants}
    assert patterns <= ({"plant-*"} if role == "tocsin_reader" else {"*"})
    if role:
        assert principal.name == role


async def test_a_reader_of_one_owner_views_that_owner_alone(
    settings: Settings, connection: Connection
) -> None:
    await connection.execute(
        "insert into tocsin.owner_grant (grantee, pattern) values ('tocsin_reader', 'plant-7')"
    )
    session = await connect(
        settings.model_copy(update={"postgres": make_conninfo(settings.postgres, user="tocsin_reader")}),
        "test",
    )
    principal = await session_principal(session)
    await session.close()
    assert principal.grants == (Grant(AccessRole.VIEWER, "plant-7"),)
    assert decide(principal, Operation.VIEW_ALARMS, "plant-7").allowed
    assert not decide(principal, Operation.VIEW_ALARMS, "mill").allowed


@pytest.mark.parametrize(
    ("role", "words", "refused"),
    [
        ("tocsin_operator", ("prune",), False),
        ("tocsin_operator", ("schedule", "add", "x", "--every", "1h"), False),
        ("tocsin_operator", ("roles", "grant", "billing", "billing"), True),
        ("tocsin_operator", ("apply", "RULES"), True),
        ("tocsin_operator", ("forget", "ada", "--yes"), True),
        ("tocsin_author", ("apply", "RULES"), False),
        ("tocsin_author", ("schedule", "add", "x", "--every", "1h"), False),
        ("tocsin_author", ("prune",), True),
        ("tocsin_author", ("silence", "add", "--where", "true", "--for", "1h", "--yes"), True),
        ("tocsin_author", ("token", "add", "x", "--grant", "admin:*"), True),
        ("tocsin_worker", ("schedule", "add", "x", "--every", "1h"), True),
    ],
)
async def test_a_command_is_refused_what_the_role_may_not_do(
    settings: Settings,
    connection: Connection,
    tocsin: CommandLine,
    tmp_path: Path,
    role: str,
    words: tuple[str, ...],
    refused: bool,
) -> None:
    import asyncio

    rules = tmp_path / "rules.yaml"
    rules.write_text("schedule: {name: tick, every: 1h, tz: UTC}\n")
    tocsin.environment["TOCSIN_POSTGRES"] = make_conninfo(settings.postgres, user=role)
    command = [str(rules) if word == "RULES" else word for word in words]
    answer = await asyncio.to_thread(tocsin.answer, *command)
    assert answer.exit_code == (1 if refused else 0), answer.out + answer.err
    if refused:
        assert f"'{role}' may not " in answer.err
        assert "log in to Postgres as a member of the role" in answer.err
        assert await all_rows(connection, "select * from tocsin.schedule") == []
