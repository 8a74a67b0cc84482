"""Postgres: named statements, sessions with safe limits, and the one retry.

Guarantees:
- Every statement is in a `.sql` file and is named `package/verb_noun`.
- Every session releases its locks when its process freezes (`idle_in_transaction_session_timeout`),
  and never waits forever for a lock (`lock_timeout`) or for a machine that is gone
  (`tcp_user_timeout`, keepalives).
- An unreachable or too old server is one clear error, and so is a pooler that drops these limits or
  shares a session among clients.

On failure: `retrying` retries deadlocks and serialization failures; everything else is raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from tocsin.core.cancellation import cancellable
from tocsin.core.errors import Refused, TocsinError, Unreachable, WrongAddress
from tocsin.core.postgres_transport import refuse_clear_text
from tocsin.core.settings import Settings
from tocsin.core.sql_errors import LOST_RACE

Connection = psycopg.AsyncConnection[Any]
Result = TypeVar("Result")
Parameters = Mapping[str, Any] | Sequence[Any] | None

MINIMUM_VERSION = 150000
# The first word of the name of a session. Each of them has a role (`migrations.roles`).
_COMPONENTS = ("clock", "cdc", "worker", "api")
_RETRIES = 10
# A service must not keep a plan for longer than the tables keep their size. For a table of five rows
# the planner chooses a sequential scan; kept until the table had 100,000 rows, it made 1,000 due
# waits take 19 s (by index: 0.3 s). So each execution is planned, for the present sizes and by
# index. Only the clock and the publisher keep generic plans (`clock.kept_plans`,
# `cdc/sql/keep_plans.sql`). Without JIT, because a discouraged scan looks expensive enough to compile.
# Without the `statement_timeout` of a role: a batch that takes longer would be retried forever.
_SERVICE_OPTIONS = MappingProxyType(
    {
        "enable_seqscan": "off",
        "max_parallel_workers_per_gather": "0",
        "jit": "off",
        "statement_timeout": "0",
        "plan_cache_mode": "force_custom_plan",
    }
)


@cache
def statement(name: str) -> bytes:
    """The SQL of `package/verb_noun`, without its comments.

    A `%` in a comment would be read as a parameter.
    """
    package, _, file = name.partition("/")
    path = files(package) / "sql" / f"{file}.sql"
    lines = path.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("--")).strip().encode()


async def fetch_one(connection: Connection, name: str, parameters: Parameters = None) -> Any:
    """The first row of the statement `name`, or None."""
    return await (await connection.execute(statement(name), parameters)).fetchone()


async def fetch_value(connection: Connection, name: str, parameters: Parameters = None) -> Any:
    """The first column of the first row of the statement `name`, or None."""
    row = await fetch_one(connection, name, parameters)
    return row[0] if row is not None else None


async def fetch_dict(
    connection: Connection, name: str, parameters: Parameters = None
) -> dict[str, Any] | None:
    """The first row of the statement `name` by column name, or None."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement(name), parameters)
        return await cursor.fetchone()


async def fetch_dicts(
    connection: Connection, name: str, parameters: Parameters = None
) -> list[dict[str, Any]]:
    """All rows of the statement `name` by column name."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement(name), parameters)
        return await cursor.fetchall()


async def fetch_all(connection: Connection, name: str, parameters: Parameters = None) -> list[Any]:
    """All rows of the statement `name`."""
    return await (await connection.execute(statement(name), parameters)).fetchall()


async def connect(settings: Settings, name: str) -> Connection:
    """A session of a command, in autocommit mode. Raises `Unreachable` or `Refused`."""
    return await _connect(settings, name, _session(settings, name))


async def connect_service(settings: Settings, name: str) -> Connection:
    """A session that a service keeps (`_SERVICE_OPTIONS`). Raises what `connect` raises."""
    return await _connect(settings, name, _session(settings, name, _SERVICE_OPTIONS))


async def _connect(settings: Settings, name: str, session: Mapping[str, Any]) -> Connection:
    conninfo = _conninfo(settings, name)
    try:
        connection = await psycopg.AsyncConnection.connect(conninfo, autocommit=True, **session)
    except psycopg.OperationalError as error:
        if "unsupported startup parameter" in str(error):
            raise _pooler_refused(conninfo, "it accepts no session options") from None
        raise Unreachable(
            f"cannot reach postgres at {shown_address(conninfo)}{shown_reason(conninfo, error)}",
            remedy="start it, or set TOCSIN_POSTGRES to a reachable server",
        ) from None
    except (psycopg.ProgrammingError, UnicodeError):
        # The message of libpq quotes parts of the string, and any part may belong to the password.
        raise WrongAddress(
            f"TOCSIN_POSTGRES={shown_address(conninfo)!r} is not a connection string",
            remedy="write postgresql://user@host:5432/database",
        ) from None
    await refuse_old_server(connection)
    await refuse_pooler(connection, settings)
    return connection


@asynccontextmanager
async def open_session(settings: Settings, name: str) -> AsyncIterator[Connection]:
    """A session of a command for the length of the block. Raises what `connect` raises."""
    connection = await connect(settings, name)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def open_service_session(settings: Settings, name: str) -> AsyncIterator[Connection]:
    """A session of a service for the length of the block. Raises what `connect` raises."""
    connection = await connect_service(settings, name)
    try:
        yield connection
    finally:
        await connection.close()


async def refuse_old_server(connection: Connection, minimum: int = MINIMUM_VERSION) -> None:
    version = connection.info.server_version
    if version < minimum:
        await connection.close()
        raise Refused(
            f"postgres {version // 10000} is too old", remedy=f"tocsin needs {minimum // 10000} or newer"
        )


async def refuse_pooler(connection: Connection, settings: Settings) -> None:
    """Refuse a pooler that drops the options of the session, or gives each statement to any session.

    Without the options a frozen process would keep its locks, and commits might not wait for the
    disk. Prepared statements, LISTEN and the fencing of a clock need one session per client. A
    pooler announces a process id of its own, so an ordinary connection is asked once.
    """
    pid, lock_timeout_ms = await fetch_one(connection, "tocsin.core/read_session")
    reason = None
    if lock_timeout_ms != _lock_timeout_ms(settings):
        reason = f"it drops session options (lock_timeout is {lock_timeout_ms} ms)"
    elif pid != connection.info.backend_pid:
        next_pid, _ = await fetch_one(connection, "tocsin.core/read_session")
        reason = "it changes the session between two statements" if next_pid != pid else None
    if reason is not None:
        await connection.close()
        raise _pooler_refused(_conninfo(settings), reason)


def _pooler_refused(conninfo: str, reason: str) -> Refused:
    return Refused(
        f"the pooler at {shown_address(conninfo)} cannot be used: {reason}",
        remedy="set TOCSIN_POSTGRES to the address of postgres itself",
    )


class CancellablePool(AsyncConnectionPool[Connection]):
    """psycopg's pool whose wait for a session cannot swallow a cancellation."""

    async def getconn(self, timeout: float | None = None) -> Connection:
        return await cancellable(super().getconn(timeout), undo=self.putconn)

    async def close(self, timeout: float = 5.0) -> None:
        await cancellable(super().close(timeout))


@asynccontextmanager
async def pool(settings: Settings, name: str, size: int) -> AsyncIterator[AsyncConnectionPool[Connection]]:
    """At most `size` sessions of a service. `connect` opens the first one, for a clear error."""
    probe = await connect(settings, name)
    await probe.close()
    async with CancellablePool(
        _conninfo(settings, name),
        min_size=1,
        max_size=size,
        kwargs={"autocommit": True, **_session(settings, name, _SERVICE_OPTIONS)},
        open=False,
        name=name,
    ) as opened:
        yield opened


SessionPool = AsyncConnectionPool[Connection]


@asynccontextmanager
async def service_pool(
    settings: Settings, name: str, *, size: int, statement_timeout_s: float
) -> AsyncIterator[SessionPool]:
    """At most `size` sessions of a service that answers also while Postgres does not.

    Nothing is waited for: taking a session raises `PoolTimeout`, an outage, while there is none. A
    session is checked before it is given out, so that a restart of Postgres costs no request.
    """
    limit = {"statement_timeout": str(int(statement_timeout_s * 1000))}
    async with CancellablePool(
        _conninfo(settings, name),
        min_size=1,
        max_size=size,
        kwargs={"autocommit": True, **_session(settings, name, {**_SERVICE_OPTIONS, **limit})},
        check=AsyncConnectionPool.check_connection,
        open=False,
        name=name,
    ) as opened:
        yield opened


async def retrying(work: Callable[[], Awaitable[Result]]) -> Result:
    """Run a whole transaction, again if it lost to another one (40001, 40P01)."""
    for attempt in range(_RETRIES):
        try:
            # If cancelled while Postgres rejects the statement, psycopg raises the error, not the
            # cancellation.
            return await cancellable(work())
        except LOST_RACE:
            if attempt == _RETRIES - 1:
                raise
            await asyncio.sleep(0.005 * 2**attempt)
    raise TocsinError("unreachable: the last attempt returns or raises")


def _session(settings: Settings, name: str, more: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
    """Parameters of a session. A frozen process keeps its locks for at most half the lease TTL.

    The defaults of the server do not matter: read committed, because `tocsin.append` must see what
    the last holder of the log committed; and a commit that waits for the disk, because a crash must
    not lose what was published.
    """
    frozen_ms = int(settings.lease_ttl_s * 500)
    options = {
        "idle_in_transaction_session_timeout": frozen_ms,
        "lock_timeout": _lock_timeout_ms(settings),
        "timezone": "UTC",
        "default_transaction_isolation": r"read\ committed",
        "search_path": "tocsin,public",
        "synchronous_commit": "on",
        **more,
    }
    return {
        "application_name": f"tocsin {name}",
        "connect_timeout": 5,
        "tcp_user_timeout": int(settings.lease_ttl_s * 1000),
        # A client that waits for an answer has sent nothing that could time out. Without keepalives
        # it would wait two hours for a machine that is gone (measured with them: 2.1 s at a TTL of
        # 2 s).
        "keepalives_idle": max(1, int(settings.lease_ttl_s)),
        "keepalives_interval": 1,
        "options": " ".join(
            [_own_options(settings), *(f"-c {key}={value}" for key, value in options.items())]
        ),
    }


def _lock_timeout_ms(settings: Settings) -> int:
    return int(settings.lease_ttl_s * 1000)


def _own_options(settings: Settings) -> str:
    """The options of the operator's connection string, placed before ours."""
    try:
        return str(conninfo_to_dict(settings.postgres).get("options", ""))
    except psycopg.ProgrammingError:
        return ""


def _conninfo(settings: Settings, name: str = "") -> str:
    """The address of the database; for a session of a service, with the role of its component."""
    if not settings.postgres:
        raise WrongAddress(
            "TOCSIN_POSTGRES is not set",
            remedy="set TOCSIN_POSTGRES, for example to "
            "postgresql://user@localhost:5432/tocsin, or run `tocsin up`, which starts its own server",
        )
    refuse_clear_text(settings, settings.postgres)
    component = name.partition(" ")[0]
    if settings.postgres_roles and component in _COMPONENTS:
        return make_conninfo(settings.postgres, user=f"tocsin_{component}")
    return settings.postgres


def shown_address(conninfo: str) -> str:
    """The address without its password, even if the string is too broken to parse."""
    try:
        parts = conninfo_to_dict(conninfo)
    except psycopg.ProgrammingError:
        if "@" in conninfo:
            return "***@" + conninfo.rpartition("@")[2]
        return "***" if "=" in conninfo else conninfo
    host = parts.get("host") or "the local socket"
    shown = f"{host}:{parts.get('port', 5432)}/{parts.get('dbname', parts.get('user', ''))}"
    return "***@" + shown.rpartition("@")[2] if "@" in shown else shown


def shown_reason(conninfo: str, error: BaseException) -> str:
    """The reason in brackets, or nothing.

    A password with an unescaped '/' is parsed as a port or a name, and the reason would quote it.
    """
    if shown_address(conninfo).startswith("***@"):
        return ""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    # With several hosts, psycopg lists the reason of each in a line of its own.
    of_hosts = [
        line.partition("connection failed: ")[2] or line[2:] for line in lines if line.startswith("- ")
    ]
    return f" ({'; '.join(of_hosts) or lines[0]})"
