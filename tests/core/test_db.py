"""Postgres: readable failures, sessions with time limits, and the retry of conflicts."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
from types import SimpleNamespace

import psycopg
import pytest

from tests.core.pooler import dropping_pooler, socket_path
from tests.sql import one_row
from tocsin.core import db
from tocsin.core.db import connect, pool, refuse_old_server, retrying, statement
from tocsin.core.errors import Refused, Unreachable
from tocsin.core.settings import Settings


async def refusal(postgres: str) -> str:
    with pytest.raises(Unreachable) as refused:
        await connect(Settings(postgres=postgres), "test")
    assert refused.value.exit_code == 2
    message = str(refused.value)
    assert "\n" not in message
    return message


async def test_a_missing_postgres_url_is_reported() -> None:
    assert "set TOCSIN_POSTGRES, for example to postgresql://" in await refusal("")


async def test_an_unreachable_server_is_reported_with_its_address() -> None:
    message = await refusal("postgresql://me:s3cret@127.0.0.1:1/mine")
    assert message.startswith("cannot reach postgres at 127.0.0.1:1/mine (")
    assert "set TOCSIN_POSTGRES" in message
    assert "s3cret" not in message


async def test_a_database_that_does_not_exist_is_reported(settings: Settings) -> None:
    message = await refusal(psycopg.conninfo.make_conninfo(settings.postgres, dbname="nowhere"))
    assert 'database "nowhere" does not exist' in message


@pytest.mark.parametrize(
    "broken",
    [
        "postgresql://me:s3cret@[::1/mine",
        "postgresql://me:s3:s3cret/x@host:abc:def/mine",
        "host=localhost password=s3cret surplus",
        "password='s3cret",
        "password=two s3cret",
    ],
)
async def test_an_invalid_connection_string_is_reported_without_its_password(broken: str) -> None:
    message = await refusal(broken)
    assert "TOCSIN_POSTGRES" in message
    assert "s3" not in message


async def test_a_word_that_is_not_a_connection_string_is_shown() -> None:
    message = await refusal("localhost")
    assert message.startswith("TOCSIN_POSTGRES='localhost' is not a connection string: write postgresql://")


async def test_a_server_that_is_too_old_is_rejected(settings: Settings) -> None:
    connection = await connect(settings, "test")
    with pytest.raises(Refused, match=r"postgres \d+ is too old: tocsin needs 99 or newer"):
        await refuse_old_server(connection, minimum=990000)
    assert connection.closed


async def test_a_session_releases_its_locks_and_never_waits_forever(settings: Settings) -> None:
    connection = await connect(settings.model_copy(update={"lease_ttl_s": 3.0}), "service")
    shown = {
        name: (await one_row(connection, "select current_setting(%s) as v", (name,)))["v"]
        for name in (
            "idle_in_transaction_session_timeout",
            "lock_timeout",
            "TimeZone",
            "default_transaction_isolation",
            "application_name",
        )
    }
    await connection.close()
    assert shown == {
        "idle_in_transaction_session_timeout": "1500ms",
        "lock_timeout": "3s",
        "TimeZone": "UTC",
        "default_transaction_isolation": "read committed",
        "application_name": "tocsin service",
    }


async def test_a_session_over_a_network_notices_that_its_server_is_gone(settings: Settings) -> None:
    """Also a session that waits for an answer and has sent nothing that could time out."""
    given = psycopg.conninfo.conninfo_to_dict(settings.postgres)
    path = f"{given['host']}/.s.PGSQL.{given.get('port', 5432)}"

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = await asyncio.open_unix_connection(path)
        await asyncio.gather(_copy(reader, server[1]), _copy(server[0], writer))

    proxy = await asyncio.start_server(forward, "127.0.0.1", 0)
    port = proxy.sockets[0].getsockname()[1]
    over_tcp = psycopg.conninfo.make_conninfo(settings.postgres, host="127.0.0.1", port=port)
    connection = await connect(settings.model_copy(update={"postgres": over_tcp, "lease_ttl_s": 3.0}), "test")
    with socket.socket(fileno=os.dup(connection.fileno())) as ours:
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_USER_TIMEOUT)
        assert [ours.getsockopt(socket.IPPROTO_TCP, option) for option in options] == [3, 1, 3000]
    await connection.close()
    proxy.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
    writer.close()


async def test_a_commit_waits_for_the_disk_whatever_the_defaults_of_the_server(settings: Settings) -> None:
    """No default of the server, database, role or connection string weakens it."""
    operator = await connect(settings, "operator")
    database = psycopg.sql.Identifier(operator.info.dbname)
    off = psycopg.sql.SQL("alter role current_user in database {} set synchronous_commit = off")
    await operator.execute(off.format(database))
    await operator.close()
    stranger = await psycopg.AsyncConnection.connect(settings.postgres)
    assert (await one_row(stranger, "select current_setting('synchronous_commit') as v"))["v"] == "off"
    await stranger.close()
    for own in ("", "-c synchronous_commit=off"):
        conninfo = psycopg.conninfo.make_conninfo(settings.postgres, options=own)
        connection = await connect(settings.model_copy(update={"postgres": conninfo}), "test")
        assert (await one_row(connection, "select current_setting('synchronous_commit') as v"))["v"] == "on"
        await connection.close()


async def test_the_operators_own_options_are_kept(settings: Settings) -> None:
    own = psycopg.conninfo.make_conninfo(settings.postgres, options="-c work_mem=7MB -c lock_timeout=9s")
    connection = await connect(settings.model_copy(update={"postgres": own}), "test")
    assert (await one_row(connection, "select current_setting('work_mem') as v"))["v"] == "7MB"
    assert (await one_row(connection, "select current_setting('lock_timeout') as v"))["v"] == "10s"
    await connection.close()


async def test_a_pool_opens_sessions_with_our_settings_and_reports_an_unreachable_server(
    settings: Settings,
) -> None:
    async with pool(settings, "pooled", 2) as opened, opened.connection() as connection:
        assert (await one_row(connection, "select current_setting('TimeZone') as v"))["v"] == "UTC"
    with pytest.raises(Unreachable, match="cannot reach postgres"):
        async with pool(Settings(postgres="postgresql://127.0.0.1:1/x"), "pooled", 2):
            pass


class ConflictingWork:
    def __init__(self, conflicts: int, error: type[psycopg.Error]) -> None:
        self.tries = 0
        self._conflicts = conflicts
        self._error = error

    async def __call__(self) -> str:
        self.tries += 1
        if self.tries <= self._conflicts:
            raise self._error("conflict")
        return "done"


@pytest.mark.parametrize("error", [psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure])
async def test_a_transaction_with_a_conflict_is_retried(error: type[psycopg.Error]) -> None:
    work = ConflictingWork(3, error)
    assert await retrying(work) == "done"
    assert work.tries == 4


async def test_a_transaction_with_a_conflict_is_not_retried_in_a_cancelled_task() -> None:
    """If the server answers with an error, psycopg raises it in place of the cancellation."""
    began, tries = asyncio.Event(), 0

    async def lose() -> None:
        nonlocal tries
        tries += 1
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise psycopg.errors.SerializationFailure("conflict") from None

    task = asyncio.create_task(retrying(lose))
    await began.wait()
    task.cancel()
    await asyncio.wait([task], timeout=5)
    assert task.cancelled()
    assert tries == 1


async def test_retries_are_limited_and_other_errors_are_not_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(db, "_RETRIES", 3)
    work = ConflictingWork(99, psycopg.errors.DeadlockDetected)
    with pytest.raises(psycopg.errors.DeadlockDetected):
        await retrying(work)
    assert work.tries == 3
    other = ConflictingWork(1, psycopg.errors.UniqueViolation)
    with pytest.raises(psycopg.errors.UniqueViolation):
        await retrying(other)
    assert other.tries == 1


def test_a_statement_is_its_file_without_comments() -> None:
    assert statement("clock/read_epoch") == b"select epoch from tocsin.log_head"
    with pytest.raises(FileNotFoundError):
        statement("clock/no_such_statement")


async def test_connecting_can_be_cancelled(settings: Settings) -> None:
    task = asyncio.create_task(connect(settings, "test"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_pooler_that_drops_session_options_is_refused(settings: Settings) -> None:
    parts = psycopg.conninfo.conninfo_to_dict(settings.postgres)
    async with dropping_pooler(socket_path(str(parts["host"]), str(parts["port"]))) as port:
        pooled = psycopg.conninfo.make_conninfo(settings.postgres, host="127.0.0.1", port=port)
        with pytest.raises(
            Refused, match=r"the pooler at 127\.0\.0\.1.* drops session options \(lock_timeout is 0 ms\)"
        ) as refused:
            await connect(settings.model_copy(update={"postgres": pooled}), "test")
    assert "the address of postgres itself" in refused.value.remedy


async def test_a_pooler_that_changes_the_session_between_statements_is_refused(settings: Settings) -> None:
    connection = await connect(settings, "test")

    class Pooled:
        """A session that answers each statement with another server process."""

        info = SimpleNamespace(backend_pid=-1)
        pids = itertools.count(1)

        async def execute(self, *_: object) -> object:
            return await connection.execute("select %s, 10000", (next(self.pids),))

        async def close(self) -> None:
            await connection.close()

    with pytest.raises(Refused, match="it changes the session between two statements"):
        await db.refuse_pooler(Pooled(), settings)  # type: ignore[arg-type]


async def test_the_reason_of_each_host_is_reported() -> None:
    message = await refusal("postgresql://me@127.0.0.1:1,127.0.0.1:2/mine")
    assert "port 1 failed: Connection refused; connection to server" in message
    assert "port 2 failed: Connection refused)" in message
