"""Only a superuser can write the log without `tocsin.append`.

A role with every right on every table cannot, and neither can the owner of the schema.
"""

from __future__ import annotations

from contextlib import suppress

import psycopg
import pytest

from cdc.adopt import adopt, find_loss
from cdc.log_reader import LogReader
from cdc.publisher import Publisher
from clock.retention.prune import prune
from clock.service import Clock
from migrations.movable_time import let_sessions_set_time
from rules.worker import Worker
from tests.cdc.published_records import (
    T0,
    append,
    forget_after,
    publish_all,
    published,
    with_long_timeouts,
)
from tests.clock.retention.old_log import fill, mark_read_up_to, set_now_to_end
from tests.core.log_partitions import small_partitions
from tests.paths import ROOT
from tests.roles.owned_database import as_role, owned
from tests.rules.apply.apply_setup import action, put
from tests.sql import all_rows
from tests.wait import eventually
from timers.schedule_spec import ScheduleSpec
from timers.schedules import put_schedule
from timers.working_set import database_now
from tocsin.client import send
from tocsin.core.audit import Actor
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection, connect
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

__all__ = ["owned"]
ROLES = ROOT / "deploy" / "postgres" / "roles.sql"
LOG = (
    *("event", "action_step", "datapoint_calculated", "log_commit", "log_head", "log_gap"),
    *("event_0", "action_step_0", "datapoint_calculated_0"),
)
AN_EVENT = (
    "(seq, id, ts, recorded_at, origin, type, correlation_id, payload)"
    " values ({seq}, gen_random_uuid(), '2026-03-02Z', '2026-03-02Z', 'caused', 'forged', gen_random_uuid(), '{{}}')"
)
A_STEP = (
    "(seq, id, action_id, name, step, attempt, state, recorded_at, correlation_id) values ({seq}, gen_random_uuid(),"
    " gen_random_uuid(), 'forged', 0, 1, 'due', '2026-03-02Z', gen_random_uuid())"
)
A_DATAPOINT = (
    "(seq, id, owner, key, ts, recorded_at, kind, payload, correlation_id) values ({seq}, gen_random_uuid(), '',"
    " 'k', '2026-03-02Z', '2026-03-02Z', 'stale', '{{}}', gen_random_uuid())"
)
INSERTS = {
    "event": AN_EVENT,
    "event_0": AN_EVENT,
    "action_step": A_STEP,
    "action_step_0": A_STEP,
    "datapoint_calculated": A_DATAPOINT,
    "datapoint_calculated_0": A_DATAPOINT,
    "log_commit": "(last_seq, first_seq, recorded_at) values ({seq}, {seq}, '2026-03-02Z')",
    "log_head": "(only_row, floor) values (true, {seq})",
    "log_gap": "(from_seq, until_seq, reason, who, at) values ({seq}, {seq}, 'forged', 'me', '2026-03-02Z')",
}
UPDATES = {
    **dict.fromkeys((table for table in LOG if not table.startswith("log_")), "seq = seq + 100"),
    "log_commit": "last_seq = last_seq + 100",
    "log_head": "floor = 100, epoch = 100",
    "log_gap": "until_seq = 100",
}


def attempts() -> list[str]:
    return [
        *(f"insert into tocsin.{table} {values.format(seq=3)}" for table, values in INSERTS.items()),
        *(f"update tocsin.{table} set {changes}" for table, changes in UPDATES.items()),
        *(f"delete from tocsin.{table}" for table in LOG),
        *(f"truncate tocsin.{table}" for table in LOG),
    ]


@pytest.fixture
def stranger_role(template: str) -> None:
    with psycopg.connect(template, autocommit=True) as server, suppress(psycopg.errors.DuplicateObject):
        server.execute("create role stranger login")


async def copy_a_commit(connection: Connection) -> None:
    async with connection.cursor() as cursor, cursor.copy("copy tocsin.log_commit from stdin") as copy:
        await copy.write(b"3\t3\t2026-03-02Z\t\\N\n")


async def contents(connection: Connection) -> list[object]:
    return [await all_rows(connection, f"select * from tocsin.{table} order by 1") for table in LOG[:6]]


@pytest.mark.usefixtures("stranger_role")
async def test_a_role_with_every_right_on_every_table_cannot_write_the_log(
    settings: Settings, connection: Connection
) -> None:
    await connection.execute("grant usage on schema tocsin to stranger")
    await connection.execute(
        "grant select, insert, update, delete, truncate on all tables in schema tocsin to stranger"
    )
    await append(connection, 2)
    before = await contents(connection)
    stranger = await as_role(settings, "stranger")
    # Also with the search_path of the functions of Tocsin.
    for path in ("public", "tocsin, pg_temp"):
        await stranger.execute(f"set search_path = {path}".encode())
        for attempt in attempts():
            try:
                changed = (await stranger.execute(attempt.encode())).rowcount
            except psycopg.errors.InsufficientPrivilege:
                continue
            pytest.fail(f"{attempt} changed {changed} rows")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="row-level security"):
            await copy_a_commit(stranger)
    assert await contents(connection) == before
    assert len(await all_rows(stranger, "select * from tocsin.event")) == 2
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for function append"):
        await append(stranger, 1)
    await stranger.close()


@pytest.mark.usefixtures("stranger_role")
async def test_a_partition_created_later_is_guarded_too(settings: Settings, connection: Connection) -> None:
    await connection.execute("select tocsin.extend_log(5)")
    await connection.execute("grant usage on schema tocsin to stranger")
    await connection.execute("grant insert, truncate on tocsin.event_5000000 to stranger")
    stranger = await as_role(settings, "stranger")
    for attempt in (
        f"insert into tocsin.event_5000000 {AN_EVENT.format(seq=5000001)}",
        "truncate tocsin.event_5000000",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match=r"append with tocsin\.append"):
            await stranger.execute(attempt.encode())
    await stranger.close()


async def test_the_owner_of_the_schema_writes_the_log_by_append_alone(owned: Settings) -> None:
    schema_owner = await connect(with_long_timeouts(owned), "owner")
    await append(schema_owner, 2)
    before = await contents(schema_owner)
    for attempt in attempts():
        with pytest.raises(
            psycopg.errors.InsufficientPrivilege, match="written by functions of tocsin alone"
        ):
            await schema_owner.execute(attempt.encode())
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="written by functions of tocsin alone"):
        await copy_a_commit(schema_owner)
    assert await contents(schema_owner) == before
    assert await append(schema_owner, 1) == 3
    await schema_owner.close()


async def test_services_run_and_losses_are_adopted_as_the_roles_that_the_docs_give_them(
    owned: Settings,
) -> None:
    schema_owner = await connect(with_long_timeouts(owned), "owner")
    await schema_owner.execute(ROLES.read_bytes())
    await schema_owner.close()
    author, operator = await as_role(owned, "tocsin_author"), await as_role(owned, "tocsin_operator")
    try:
        await put(author, action("tell"))
        actor = Actor("ann", "test", await database_now(author))
        await put_schedule(author, ScheduleSpec("beat", {"every": "1s"}, action="tell"), actor)
        async with running(
            Service("clock", Clock(owned).run),
            Service("cdc", Publisher(owned).run),
            Service("worker", Worker(owned).run),
        ):

            async def has_acted() -> bool:
                return bool(await all_rows(operator, "select 1 from tocsin.action where state = 'completed'"))

            await eventually(has_acted, "a fire has led to an action", within=60)
            roles = await all_rows(
                operator,
                "select distinct usename, split_part(application_name, ' ', 2) as service"
                " from pg_stat_activity where datname = current_database() and application_name"
                " ~ '^tocsin (clock|cdc|worker)( |$)'",
            )
            assert {(row["usename"], row["service"]) for row in roles} == {
                ("tocsin_clock", "clock"),
                ("tocsin_cdc", "cdc"),
                ("tocsin_worker", "worker"),
            }
            await send("plant", "a", 1, settings=owned)

            async def is_stored() -> bool:
                return bool(await all_rows(operator, "select 1 from tocsin.datapoint"))

            await eventually(is_stored, "a datapoint is stored", within=60)
        await publish_all(owned)
        await published(owned, operator)
        await append(operator, 4)
        await publish_all(owned)
        superuser = await as_role(owned, "postgres")
        await forget_after(superuser, 3)
        await superuser.close()
        bus = await connect_bus(owned, "test")
        loss = await find_loss(bus.jetstream(), owned, LogReader(operator))
        await bus.close()
        assert loss is not None
        assert loss.first == 4
        await adopt(LogReader(operator), owned, loss, Actor("ann", "test", T0))
        await publish_all(owned)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await operator.execute("delete from tocsin.event")
    finally:
        await author.close()
        await operator.close()


async def test_the_clock_drops_old_partitions_of_a_schema_that_it_does_not_own(owned: Settings) -> None:
    superuser = await as_role(owned, "postgres")
    await small_partitions(superuser, 10)
    await fill(superuser, 25)
    await mark_read_up_to(superuser, 25)
    await superuser.execute("insert into tocsin.action_limit values ('gone', '{}')")
    await superuser.close()
    schema_owner = await connect(with_long_timeouts(owned), "owner")
    await schema_owner.execute(ROLES.read_bytes())
    await let_sessions_set_time(schema_owner)
    await schema_owner.close()
    clock = await as_role(owned, "tocsin_clock")
    try:
        await set_now_to_end(clock)
        done = await prune(clock, owned)
        assert (len(done.tables), done.rows, done.left) == (6, {"action_limit": 1}, [])
        newest = await all_rows(
            clock,
            "select max(inhrelid::regclass::text) as name from pg_inherits"
            " where inhparent = 'tocsin.event'::regclass",
        )
        with pytest.raises(psycopg.DatabaseError, match="has records that are kept"):
            await clock.execute(
                "select tocsin.drop_partition(%s)", (newest[0]["name"].removeprefix("tocsin."),)
            )
    finally:
        await clock.close()
