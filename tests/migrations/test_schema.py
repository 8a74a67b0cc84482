"""`schema.sql` is what all migrations add up to."""

from __future__ import annotations

from migrations.dump import SCHEMA, describe
from tocsin.core.db import Connection


async def test_the_committed_schema_is_what_the_migrations_make(connection: Connection) -> None:
    assert await describe(connection) == SCHEMA.read_text(encoding="utf-8"), (
        "run `python -m tests.migrations` and look at the difference"
    )


async def test_a_changed_schema_is_noticed(connection: Connection) -> None:
    before = await describe(connection)
    for change in (
        "alter table tocsin.timer add column extra text",
        "create index extra on tocsin.timer (generation)",
        "alter table tocsin.audit alter column who drop not null",
        "alter table tocsin.timer drop constraint timer_fire_at_check",
        "create function tocsin.extra() returns integer language sql as 'select 1'",
        "grant execute on function tocsin.append to public",
    ):
        await connection.execute(change)
        after = await describe(connection)
        assert after != before, change
        before = after


async def test_partitions_are_data_and_not_schema(connection: Connection) -> None:
    before = await describe(connection)
    await connection.execute("select tocsin.extend_log(5)")
    assert await describe(connection) == before
