"""The whole product with the users of deploy/nats: each service has the permissions it needs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from cdc.log_reader import LogReader
from cdc.publisher import Publisher
from cdc.rebuild import plan_rebuild, rebuild
from clock.service import Clock
from rules.apply import apply
from rules.documents.load import load_text
from rules.worker import Worker
from tests.client.service import make_service, note
from tests.deploy.guarded_nats import GuardedNats, api_of_user, guarded_nats
from tests.sql import all_rows
from tests.wait import eventually
from timers.working_set import database_now
from tocsin.cli.streams import create_streams
from tocsin.client import Event, Events, Inbox, KvMark, Records, Unreachable, consume, replay
from tocsin.core.audit import Actor
from tocsin.core.bus import connect_bus, open_bus
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

RULES = """
schedule: {name: beat, every: 1s, grace: 1m}
---
action:
  name: tell
  publish: {subject: reports.beat, payload: {event: "{{ id }}"}}
---
action_rule:
  name: tell-each-beat
  on: event
  when: 'origin == "scheduled" && schedule == "beat"'
  action: tell
---
datapoint_type: {name: temperature, key: temperature, value: number}
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GuardedNats]:
    with guarded_nats(tmp_path) as started:
        yield started


def as_user(server: GuardedNats, user: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Set the environment of a service with that user; returns its URL."""
    monkeypatch.setenv("TOCSIN_NATS_INBOX", f"_INBOX_{user}")
    monkeypatch.setenv("TOCSIN_NATS_API", api_of_user(user))
    return server.url_of(user)


async def make_streams(server: GuardedNats, settings: Settings, connection: Connection) -> None:
    own = server.settings_of("admin", settings)
    async with open_bus(own, "test") as bus:
        await create_streams(connection, bus, own)


async def test_clock_cdc_worker_producer_and_consumer_do_their_work(
    server: GuardedNats, settings: Settings, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    roles = {role: server.settings_of(role, settings) for role in ("clock", "cdc", "worker")}
    await apply(connection, load_text(RULES), Actor("tester", "test", await database_now(connection)))
    await make_streams(server, settings, connection)
    handler = await connect_bus(server.settings_of("fulfilment", settings), "test")
    reports = await handler.subscribe("reports.beat")
    with capture_logs() as logs:
        async with running(
            Service("clock", Clock(roles["clock"]).run),
            Service("cdc", Publisher(roles["cdc"]).run),
            Service("worker", Worker(roles["worker"]).run),
        ):
            await reports.next_msg(timeout=30)
            await _produce(server, settings)
            await _is_current(connection)
            await _consume(server, settings, monkeypatch)
            url = as_user(server, "operator", monkeypatch)
            assert [record async for record in replay(Records(namespace="tocsin"), nats=url)]
    await handler.close()
    assert [line for line in logs if "permission missing" in line["event"]] == []


async def _produce(server: GuardedNats, settings: Settings) -> None:
    producer = await connect_bus(server.settings_of("producer", settings), "test")
    body = json.dumps({"value": 21.5}).encode()
    stored = await producer.jetstream(timeout=10).publish("tocsin.v1.datapoint.plant.temperature", body)
    assert stored.stream == "tocsin-data"
    await producer.close()


async def _is_current(connection: Connection) -> None:
    async def is_there() -> bool:
        rows = await all_rows(connection, "select from tocsin.current_value where key = 'temperature'")
        return len(rows) == 1

    await eventually(is_there, "the datapoint is the current value", within=30)


async def _consume(server: GuardedNats, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    url = as_user(server, "billing", monkeypatch)
    ledger: Connection = await psycopg.AsyncConnection.connect(settings.postgres, autocommit=True)
    await make_service(ledger)
    stop, seen = asyncio.Event(), asyncio.Event()
    events = Events(namespace="tocsin", origin="scheduled")

    async def see(event: Event) -> None:
        seen.set()

    by_inbox = asyncio.create_task(
        consume(
            events,
            note,
            consumer="billing",
            keep=Inbox(settings.postgres),
            start="beginning",
            nats=url,
            stop=stop,
        )
    )

    async def is_noted() -> bool:
        assert not by_inbox.done()
        return len(await all_rows(ledger, "select from effect")) > 1

    await eventually(is_noted, "events are handled")
    stop.set()
    await by_inbox
    await ledger.close()
    operator = await connect_bus(server.settings_of("operator", settings), "test")
    await operator.jetstream(timeout=5).delete_consumer("tocsin", "billing")
    await operator.close()
    again = asyncio.Event()
    by_mark = asyncio.create_task(
        consume(events, see, consumer="billing", keep=KvMark(), start="beginning", nats=url, stop=again)
    )
    async with asyncio.timeout(20):
        await seen.wait()
    again.set()
    await by_mark


async def test_the_administrator_rebuilds_the_stream(
    server: GuardedNats, settings: Settings, connection: Connection
) -> None:
    own = server.settings_of("admin", settings)
    bus = await connect_bus(own, "test")
    reader = LogReader(connection)
    plan = await plan_rebuild(bus, own, reader)
    actor = Actor("tester", "test", await database_now(connection))
    assert await rebuild(bus, own, reader, actor, lambda _: None) == plan.last + 1
    assert await rebuild(bus, own, reader, actor, lambda _: None) == plan.last + 2
    await bus.close()


async def test_missing_streams_of_a_consumer_are_reported_with_the_remedy(
    server: GuardedNats, settings: Settings, monkeypatch: pytest.MonkeyPatch, connection: Connection
) -> None:
    monkeypatch.setattr("tocsin.client._streams.API_TIMEOUT_S", 0.3)
    monkeypatch.setattr("tocsin.client._durable.API_TIMEOUT_S", 0.3)
    own = server.settings_of("admin", settings)
    bus = await connect_bus(own, "test")
    actor = Actor("tester", "test", await database_now(connection))
    await rebuild(bus, own, LogReader(connection), actor, lambda _: None)
    await bus.close()

    async def see(_: Event) -> None: ...

    url = as_user(server, "billing", monkeypatch)
    events = Events(namespace="tocsin")
    with pytest.raises(Unreachable, match=r"(?i)stream\.create\.tocsin-consumers-dead.*prepare` once"):
        await consume(events, see, consumer="billing", keep=KvMark(), nats=url)
    # An inbox of another user is forbidden, and the error names it.
    monkeypatch.setenv("TOCSIN_NATS_INBOX", "_INBOX_cdc")
    with pytest.raises(Unreachable, match=r"(?i)subscription to .*_INBOX_cdc"):
        await consume(events, see, consumer="billing", keep=KvMark(), nats=url)
