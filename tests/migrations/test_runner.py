"""Migrations are applied once, by one migrator, and never over a history that does not match."""

from __future__ import annotations

import asyncio
import itertools

import psycopg
import pytest

from migrations.runner import Migration, migrate, refuse_unmigrated, versions
from tests.wait import eventually
from tocsin.core.db import Connection, connect
from tocsin.core.errors import Refused
from tocsin.core.settings import Settings

FIRST = Migration(1, "0001_first", b"create table first (id integer)")
SECOND = Migration(2, "0002_second", b"create table second (id integer)")


async def applied(connection: Connection) -> list[str]:
    rows = await (
        await connection.execute("select name from public.tocsin_migration order by number")
    ).fetchall()
    return [name for (name,) in rows]


def test_the_versions_are_numbered_without_gaps() -> None:
    assert [version.number for version in versions()] == list(range(1, len(versions()) + 1))
    assert all(version.name.startswith(f"{version.number:04}_") for version in versions())


async def test_each_version_is_applied_once(fresh: Connection) -> None:
    assert await migrate(fresh, (FIRST,)) == ["0001_first"]
    assert await migrate(fresh, (FIRST,)) == []
    assert await migrate(fresh, (FIRST, SECOND)) == ["0002_second"]
    assert await applied(fresh) == ["0001_first", "0002_second"]


async def test_a_later_version_is_applied_on_top_of_the_baseline(fresh: Connection) -> None:
    await migrate(fresh)
    number = versions()[-1].number + 1
    later = Migration(number, f"{number:04}_later", b"alter table tocsin.setting add column note text")
    assert await migrate(fresh, (*versions(), later)) == [later.name]
    assert await migrate(fresh, (*versions(), later)) == []


async def test_a_version_that_fails_leaves_nothing_behind(fresh: Connection) -> None:
    broken = Migration(2, "0002_broken", b"create table half (id integer); select 1 / 0")
    with pytest.raises(psycopg.errors.DivisionByZero):
        await migrate(fresh, (FIRST, broken))
    objects = await (
        await fresh.execute(
            "select to_regclass('first'), to_regclass('half'), to_regclass('tocsin_migration')"
        )
    ).fetchone()
    assert objects == (None, None, None)


async def test_an_edited_version_is_refused_by_name(fresh: Connection) -> None:
    await migrate(fresh, (FIRST,))
    edited = Migration(1, "0001_first", b"create table first (id bigint)")
    with pytest.raises(Refused, match="'0001_first' was edited after it was applied"):
        await migrate(fresh, (edited, SECOND))
    assert await applied(fresh) == ["0001_first"]


async def test_a_version_from_the_future_is_refused_by_name(fresh: Connection) -> None:
    await migrate(fresh, (FIRST, SECOND))
    with pytest.raises(Refused, match="'0002_second', which this version of tocsin does not know"):
        await migrate(fresh, (FIRST,))


async def test_a_database_with_another_history_is_refused_with_the_remedy(fresh: Connection) -> None:
    """As after an upgrade from a build with other migrations."""
    await migrate(fresh, (Migration(1, "0001_time", b"select 1"), SECOND))
    refusal = (
        f"database '{fresh.info.dbname}' has migration '0001_time' where this version of tocsin has "
        f"'{versions()[0].name}': use an empty database (with `tocsin up`, another --data directory), or run the "
        "version of tocsin that created this one"
    )
    with pytest.raises(Refused) as refused_migration:
        await migrate(fresh)
    with pytest.raises(Refused) as refused_service:
        await refuse_unmigrated(fresh)
    assert (str(refused_migration.value), str(refused_service.value)) == (refusal, refusal)
    assert await applied(fresh) == ["0001_time", "0002_second"]


async def test_a_refusal_names_the_database(fresh: Connection) -> None:
    name = fresh.info.dbname
    with pytest.raises(Refused, match=f"^database '{name}' lacks the migrations "):
        await refuse_unmigrated(fresh)
    await migrate(fresh, (FIRST, SECOND))
    with pytest.raises(Refused, match=f"^database '{name}' has migration '0002_second', which "):
        await migrate(fresh, (FIRST,))
    with pytest.raises(Refused, match=f"^in database '{name}', migration '0001_first' was edited "):
        await migrate(fresh, (Migration(1, "0001_first", b""), SECOND))


async def test_a_service_refuses_a_database_that_was_never_migrated(fresh: Connection) -> None:
    with pytest.raises(
        Refused, match=rf"lacks the migrations {versions()[0].name}, .*: run `tocsin migrate`"
    ):
        await refuse_unmigrated(fresh)


async def test_a_service_names_the_one_version_that_is_missing(fresh: Connection) -> None:
    await migrate(fresh, versions()[:-1])
    with pytest.raises(Refused, match=f"lacks the migrations {versions()[-1].name}: "):
        await refuse_unmigrated(fresh)
    await migrate(fresh)
    await refuse_unmigrated(fresh)


async def test_a_service_refuses_a_newer_database(connection: Connection) -> None:
    await connection.execute(
        "insert into public.tocsin_migration (number, name, checksum) values (9999, '9999_later', '')"
    )
    with pytest.raises(Refused, match="9999_later"):
        await refuse_unmigrated(connection)


@pytest.mark.parametrize("sqlstate", ["40P01", "55P03"])
async def test_a_version_that_loses_a_race_for_its_locks_is_applied_again(
    fresh: Connection, sqlstate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Services that work meanwhile take the same locks in another order."""
    monkeypatch.setattr("migrations.runner._PAUSE_S", 0.01)
    await migrate(fresh, (FIRST,))
    await fresh.execute("create sequence attempt")  # is not rolled back
    assert await migrate(fresh, (FIRST, _losing(sqlstate, 2))) == ["0002_losing"]
    assert await applied(fresh) == ["0001_first", "0002_losing"]


async def test_a_version_that_never_gets_its_locks_is_refused_with_the_remedy(
    fresh: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("migrations.runner._PAUSE_S", 0.01)
    await migrate(fresh, (FIRST,))
    await fresh.execute("create sequence attempt")
    with pytest.raises(Refused, match=r"nothing was migrated: .* stop the workers"):
        await migrate(fresh, (FIRST, _losing("40P01", 1_000)))
    assert await applied(fresh) == ["0001_first"]


def _losing(sqlstate: str, times: int) -> Migration:
    """A version that fails so often."""
    fails = (
        f"if nextval('attempt') <= {times} then raise exception 'lost' using errcode = '{sqlstate}'; end if;"
    )
    return Migration(2, "0002_losing", f"do $$ begin {fails} end $$; create table late (id integer)".encode())


async def test_a_second_migrator_waits_longer_than_its_lock_timeout_and_finds_nothing_to_do(
    empty: Settings, fresh: Connection
) -> None:
    """The first holds the lock for longer than the lock timeout of the second."""
    slow = Migration(1, "0001_slow", b"select pg_sleep(1.5)")
    second = await connect(empty, "second")
    await second.execute("set lock_timeout = '100ms'")
    first_run = asyncio.create_task(migrate(fresh, (slow,)))
    watch = await connect(empty, "watch")

    async def first_holds_the_lock() -> bool:
        row = await (
            await watch.execute(
                "select count(*) from pg_locks where mode = 'ShareRowExclusiveLock' and granted"
            )
        ).fetchone()
        return bool(row and row[0])

    await eventually(first_holds_the_lock, "the first migrator holds the lock")
    assert await migrate(second, (slow,)) == []
    assert await first_run == ["0001_slow"]
    await second.close()
    await watch.close()


async def test_many_migrators_at_once_apply_each_version_once(empty: Settings, fresh: Connection) -> None:
    others = [await connect(empty, f"migrator {number}") for number in range(3)]
    results = await asyncio.gather(*(migrate(connection) for connection in (fresh, *others)))
    assert sorted(itertools.chain(*results)) == [version.name for version in versions()]
    for connection in others:
        await connection.close()
