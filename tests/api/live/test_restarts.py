"""Clients of the feed while the API is killed and while Postgres is away: no hole, and no record twice."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import aiohttp
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from cdc.publisher import Publisher
from tests.api.killed_api import api_process
from tests.api.live.feeds import append
from tests.api.live.listeners import connected, listening
from tests.api.running_api import HttpClient, RunningApi
from tests.client.service import bring_up
from tests.wait import eventually
from tocsin.api.access import known_tokens
from tocsin.api.live import door
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

RECORDS = 60
KILLS = 3


class Reader:
    """A client that connects again after each failure, and continues after the last record that it has."""

    def __init__(self, http: aiohttp.ClientSession, token: str) -> None:
        self.client = HttpClient(http, "", token, "reader")
        self.seqs: list[int] = []

    @property
    def after(self) -> int:
        return self.seqs[-1] if self.seqs else 0

    async def run(self) -> None:
        while self.after < RECORDS:
            with suppress(aiohttp.ClientError, AssertionError, TypeError, TimeoutError):
                await self.read()
            await asyncio.sleep(0.05)

    async def read(self) -> None:
        raise NotImplementedError


class SseReader(Reader):
    async def read(self) -> None:
        async with listening(self.client, **{"last-event-id": str(self.after)}) as listener:
            while (message := await listener.next()) is not None:
                assert message.event == "message"
                self.seqs.append(message.data["seq"])
                if self.after >= RECORDS:
                    return


class PollReader(Reader):
    async def read(self) -> None:
        answer = await self.client.get(f"/v1/records?after={self.after}&wait=5")
        self.seqs += [item["seq"] for item in answer.json["items"]]


class SocketReader(Reader):
    async def read(self) -> None:
        async with connected(self.client) as socket:
            await socket.call("subscribe", after=self.after)
            while self.after < RECORDS:
                message = await socket.receive()
                if "record" in message:
                    self.seqs.append(message["record"]["seq"])


async def test_clients_continue_after_each_kill_of_the_api(
    api: RunningApi, settings: Settings, connection: Connection
) -> None:
    _, token = await api.mint("viewer:*")
    stranger = await api.with_token(None)
    readers = [kind(stranger.http, token) for kind in (SseReader, PollReader, SocketReader)]
    reading: list[asyncio.Task[None]] = []
    async with running(Service("cdc", Publisher(settings).run)):
        for kill in range(KILLS):
            async with api_process(settings) as (process, url):
                for reader in readers:
                    reader.client.url = url
                reading = reading or [asyncio.create_task(reader.run()) for reader in readers]
                first = kill * RECORDS // KILLS
                await append(connection, 10)

                async def have_some(wanted: int = first + 1) -> bool:
                    return all(reader.after >= wanted for reader in readers)

                await eventually(have_some, "every client has read from this process")
                await append(connection, RECORDS // KILLS - 10)
                if kill < KILLS - 1:
                    process.kill()
                else:
                    async with asyncio.timeout(60):
                        await asyncio.gather(*reading)
    for reader in readers:
        assert reader.seqs == list(range(1, RECORDS + 1)), type(reader).__name__


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
