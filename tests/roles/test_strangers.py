"""What a role without grants, or the owner by a slip, could do to the log: the exploits of the review."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from clock.retention.prune import prune
from clock.time_source import wall_now
from migrations.runner import migrate
from tests.cdc.published_records import append
from tests.roles.owned_database import OWNER, STRANGER, as_role
from tests.rules.apply.apply_setup import action, put
from tests.sql import all_rows, one_row
from timers.schedule_spec import ScheduleSpec
from timers.schedules import put_schedule
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

_LOCKS = ("log", "rules", "health", "prune", "extend_log", "extend_datapoints", "migrations")


async def _take_every_lock(stranger: Connection) -> None:
    for name in _LOCKS:
        await stranger.execute("select pg_advisory_lock(hashtext(%s))", (f"tocsin.{name}",))
    await stranger.execute("select pg_advisory_lock(hashtextextended('tocsin.tz-version', 0))")


async def test_a_stranger_that_takes_advisory_locks_stops_nothing(owned: Settings) -> None:
    stranger, owner = await as_role(owned, STRANGER), await as_role(owned, OWNER)
    await _take_every_lock(stranger)
    await owner.execute("set lock_timeout = '2s'")
    await append(owner, 2)
    await owner.execute("select tocsin.extend_log(5), tocsin.extend_datapoints('2026-01-01', '2026-01-02')")
    await put(owner, action("tell"))
    actor = Actor("ann", "test", wall_now())
    await put_schedule(owner, ScheduleSpec("daily", {"cron": "0 8 * * *", "tz": "Europe/London"}), actor)
    await prune(owner, owned)
    await migrate(owner)
    await stranger.close()
    await owner.close()


async def test_a_stranger_cannot_hold_the_lock_of_an_idempotency_key(owned: Settings) -> None:
    stranger, owner = await as_role(owned, STRANGER), await as_role(owned, OWNER)
    await stranger.execute("select pg_advisory_lock(hashtextextended('ann' || chr(31) || 'order-17', 27))")
    row = await one_row(owner, "select outcome from tocsin.find_answer('ann', 'order-17', sha256('x'))")
    assert row["outcome"] == "new"
    await stranger.close()
    await owner.close()


async def test_the_locks_of_tocsin_are_out_of_reach_of_a_stranger(owned: Settings) -> None:
    """Also for one who may use the schema and read every table of it, and for a shared lock."""
    stranger, owner = await as_role(owned, STRANGER), await as_role(owned, OWNER)
    await owner.execute(f"grant usage on schema tocsin to {STRANGER}".encode())
    await owner.execute(f"grant select on all tables in schema tocsin to {STRANGER}".encode())
    tables = await all_rows(
        owner, "select relname from pg_class where starts_with(relname, 'lock_') and relkind = 'r' order by 1"
    )
    assert len(tables) == 8
    for table in tables:
        for mode in ("share", "share row exclusive", "access exclusive"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                async with stranger.transaction():
                    await stranger.execute(f"lock table tocsin.{table['relname']} in {mode} mode".encode())
    for function in (
        "lock_log",
        "try_share_log",
        "lock_rules",
        "lock_health",
        "try_lock_health",
        "try_lock_calculation",
        "lock_tz_version",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await stranger.execute(f"select tocsin.{function}()".encode())
    await stranger.close()
    await owner.close()


async def test_no_search_path_opens_the_guard_of_the_log_for_its_owner(owned: Settings) -> None:
    owner = await as_role(owned, OWNER)
    await append(owner, 2)
    await owner.execute("set search_path = tocsin, pg_temp")
    for statement in (
        "insert into tocsin.log_commit (last_seq, first_seq, recorded_at) values (9, 9, now())",
        "update tocsin.event set type = 'forged'",
        "delete from tocsin.event",
        "do $$ begin delete from tocsin.event; end $$",
    ):
        with pytest.raises(
            psycopg.errors.InsufficientPrivilege, match="written by functions of tocsin alone"
        ):
            await owner.execute(statement.encode())
    assert await append(owner, 1) == 3
    await owner.close()


async def test_a_member_of_the_owner_writes_the_log_by_append_alone_after_set_role(owned: Settings) -> None:
    superuser = await as_role(owned, "postgres")
    await superuser.execute(f"grant {OWNER} to {STRANGER}".encode())
    member = await as_role(owned, STRANGER)
    try:
        await member.execute(f"set role {OWNER}".encode())
        assert await append(member, 1) == 1
        with pytest.raises(
            psycopg.errors.InsufficientPrivilege, match="written by functions of tocsin alone"
        ):
            await member.execute("delete from tocsin.event")
    finally:
        await superuser.execute(f"revoke {OWNER} from {STRANGER}".encode())
        await member.close()
        await superuser.close()


async def test_no_session_sets_the_time_of_a_database_that_is_not_for_tests(owned: Settings) -> None:
    owner = await as_role(owned, OWNER)
    await owner.execute("set tocsin.now = '2020-01-01'")
    await append(owner, 1)
    event = await one_row(owner, "select recorded_at, tocsin.instant() as instant from tocsin.event")
    for instant in event.values():
        assert abs(instant - wall_now()) < timedelta(hours=1)
    await owner.close()
