"""Clients of the feed while Postgres is away: they stay connected, and miss nothing."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.api.live.feeds import append
from tests.api.live.listeners import connected, listening
from tests.api.running_api import RunningApi
from tests.client.service import bring_up
from tocsin.api.access import known_tokens
from tocsin.api.live import door
from tocsin.core.db import Connection


async def test_connections_stay_open_while_postgres_is_away(
    api: RunningApi, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "HEARTBEAT_S", 0.05)
    monkeypatch.setattr(door, "CHECK_S", 0.0)
    monkeypatch.setattr(known_tokens, "KEPT_S", 0.0)
    monkeypatch.setattr("tocsin.api.context._SESSION_WAIT_S", 0.2)
    ann = await api.client("viewer:*")
    async with listening(ann) as listener, connected(ann) as socket:
        await append(connection, 1)
        await bring_up(api.settings)
        assert await listener.seqs(1) == [1]
        await _postgres(connection, is_there=False)
        try:
            assert (await ann.get("/v1/me")).status == 503
            for _ in range(3):
                beat = await listener.next(with_heartbeats=True)
                assert beat is not None, "the feed is open"
                assert beat.data is None
                assert "heartbeat" in await socket.receive()
        finally:
            await _postgres(connection, is_there=True)
        await append(connection, 2)
        await bring_up(api.settings)
        assert await listener.seqs(2) == [2, 3]


async def _postgres(connection: Connection, *, is_there: bool) -> None:
    """Refuse the sessions of the API, and end those that it has; or accept them again."""
    elsewhere = make_conninfo(
        connection.info.dsn, dbname="postgres", password=connection.info.password or None
    )
    async with await psycopg.AsyncConnection.connect(elsewhere, autocommit=True) as admin:
        name = sql.Identifier(connection.info.dbname)
        allow = sql.SQL("alter database {} allow_connections {}")
        await admin.execute(allow.format(name, sql.Literal(is_there)))
        if not is_there:
            await admin.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s and pid <> %s",
                (connection.info.dbname, connection.info.backend_pid),
            )
