"""`schema.sql` is what all migrations add up to, and running it gives the same database."""

from __future__ import annotations

from typing import Any

from migrations.dump import SCHEMA, describe
from migrations.runner import migrate
from tests.sql import all_rows
from tocsin.core.db import Connection

SINGLE_ROWS = ("calc_position", "log_head", "cdc_report", "pipeline_report", "prune_report")


async def contents(connection: Connection) -> list[list[dict[str, Any]]]:
    """The partitions and the rows of a new database, which the description leaves out."""
    partitions = await all_rows(
        connection,
        "select relname, pg_get_expr(relpartbound, oid) as bound, relacl::text as rights,"
        " (select array_agg(tgname order by tgname) from pg_trigger t where t.tgrelid = c.oid) as triggers,"
        " (select array_agg(pg_get_indexdef(indexrelid) order by indexrelid::regclass::text)"
        "  from pg_index i where i.indrelid = c.oid) as indexes"
        " from pg_class c where relnamespace = 'tocsin'::regnamespace and relispartition order by relname",
    )
    migrations = await all_rows(
        connection, "select number, name, checksum from public.tocsin_migration order by number"
    )
    rows = [await all_rows(connection, f"select * from tocsin.{name}") for name in SINGLE_ROWS]
    return [partitions, migrations, *rows]


async def test_the_committed_schema_is_what_the_migrations_make(migrated: Connection) -> None:
    assert await describe(migrated) == SCHEMA.read_text(encoding="utf-8"), (
        "run `python -m tests.migrations` and look at the difference"
    )


async def test_running_the_committed_schema_gives_what_the_migrations_make(
    migrated: Connection, fresh: Connection
) -> None:
    await fresh.execute(SCHEMA.read_bytes())
    assert await describe(fresh) == await describe(migrated)
    assert await contents(fresh) == await contents(migrated)
    assert await migrate(fresh) == []


async def test_a_changed_schema_is_detected(connection: Connection) -> None:
    before = await describe(connection)
    for change in (
        "alter table tocsin.timer add column extra text",
        "create index extra on tocsin.timer (generation)",
        "alter table tocsin.audit alter column who drop not null",
        "alter table tocsin.audit alter column owner drop default",
        "alter table tocsin.timer drop constraint timer_fire_at_check",
        "alter table tocsin.action_wait drop constraint action_wait_action_id_fkey",
        "alter table tocsin.timer set (fillfactor = 90)",
        "create function tocsin.extra() returns integer language sql as 'select 1'",
        "grant execute on function tocsin.append to public",
        "grant select on tocsin.event to public",
        "grant select on tocsin.held_timer to public",
        "create view tocsin.extra_view as select 1 as one",
        "create or replace view tocsin.held_timer as"
        " select kind, ref, key, nominal_at, ''::text as lane, 0 as partition from tocsin.timer",
        "create type tocsin.extra_input as (id uuid)",
        "drop trigger guard on tocsin.event",
        "drop policy readable on tocsin.event",
        "alter table tocsin.log_gap disable row level security",
        "comment on table tocsin.timer is 'other'",
        "comment on column tocsin.timer.ref is null",
        "comment on type tocsin.event_input is 'other'",
        "comment on function tocsin.append is 'other'",
    ):
        await connection.execute(change.encode())
        after = await describe(connection)
        assert after != before, change
        before = after


async def test_partitions_are_data_and_not_schema(connection: Connection) -> None:
    before = await describe(connection)
    await connection.execute("select tocsin.extend_log(5)")
    assert await describe(connection) == before


async def test_every_table_view_type_and_function_has_a_comment(connection: Connection) -> None:
    """An operator reads them in psql, with `\\d+` and `\\df+`."""
    without = await all_rows(
        connection,
        "select oid::regclass::text as name from pg_class"
        " where relnamespace = 'tocsin'::regnamespace and relkind in ('r', 'p', 'v') and not relispartition"
        " and obj_description(oid, 'pg_class') is null"
        " union all select reltype::regtype::text from pg_class"
        " where relnamespace = 'tocsin'::regnamespace and relkind = 'c' and obj_description(reltype, 'pg_type') is null"
        " union all select oid::regprocedure::text from pg_proc"
        " where pronamespace = 'tocsin'::regnamespace and obj_description(oid, 'pg_proc') is null",
    )
    assert without == []
