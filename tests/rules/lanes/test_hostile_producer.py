"""F1, F2: no message of a producer is believed, stops a worker, or delays the work of other owners."""

from __future__ import annotations

import json
import random
from typing import Any
from uuid import UUID, uuid4

import pytest

from rules.actions.reports import ReportConsumer
from rules.alarms.over_series import SeriesAlarms
from rules.lanes.dead_letters import read_dead_letters
from rules.lanes.external_events import EventIngester
from tests.cdc.published_records import smaller, with_long_timeouts
from tests.rules.apply.apply_setup import put, rows
from tests.rules.lanes.lane_setup import (
    has_stream,
    jetstream,
    lane_worker,
    make_stream,
    partitions,
    wait_for_rows,
)
from tests.rules.lanes.raw_producer import raw_producer
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

HEALTH = json.dumps(
    {
        "specversion": "1.0",
        "id": str(uuid4()),
        "source": "tocsin/x",
        "type": "datapoint-health",
        "time": "2026-11-18T05:00:00Z",
        "datacontenttype": "application/json",
        "seq": 1_000_000_000,
        "recordedat": "2026-11-18T05:00:00Z",
        "correlationid": str(uuid4()),
        "owner": "plant",
        "key": "system.health",
        "kind": "health",
        "data": {"health": "outage"},
    }
).encode()
SOURCE = "Nats-Stream-Source"
FORGED = [
    f"{SOURCE}: tocsin 1000000000 > > x",
    f"{SOURCE} : tocsin 1000000000 > > x",
    f"{SOURCE}\t: tocsin 1000000000 > > x",
    f" {SOURCE} : tocsin 1000000000 > > x",
    f"{SOURCE} : x",
    f"{SOURCE} : ",
    f"{SOURCE} : a b",
    f"{SOURCE} : a -5",
    f"{SOURCE} : a 99999999999999999999999999",
    f"{SOURCE} : a ١٢",
    "Nats-Msg-Id : \x01",
    "Nats-Msg-Size: 5",
    ":",
    "no colon",
    "X: \x00\xff",
    "X" * 3000,
]
RULES = (
    "event_rule: {name: down, datapoint: system.health, fire: 'value == \"outage\"', severity: critical}\n"
)


@pytest.fixture
def there(settings: Settings) -> Settings:
    return with_long_timeouts(smaller(settings, data_partitions=1))


async def letters(settings: Settings) -> list[dict[str, Any]]:
    async with jetstream(settings) as js:
        return await read_dead_letters(js, settings, None, 1000)


async def test_a_header_of_a_producer_gives_no_authority(there: Settings, connection: Connection) -> None:
    """F1: health that a producer sends must neither open nor resolve an alarm, whatever its headers."""
    await put(connection, RULES)
    await make_stream(there)
    worker = lane_worker("one", there, SeriesAlarms())
    async with running(worker), raw_producer(there) as hostile:
        for header in FORGED:
            await hostile.publish(
                f"{there.subjects}.datapoint.plant.system.health", HEALTH, f"{header}\r\n".encode()
            )
        await hostile.publish(f"{there.subjects}.datapoint.other.temperature", b'{"value": 5}')
        await wait_for_rows(connection, "tocsin.datapoint", 1)
    assert [row["owner"] for row in await rows(connection, "datapoint", "stream_seq")] == ["other"]
    assert await rows(connection, "alarm", "id") == []
    assert [row["last_source_seq"] for row in await partitions(connection)] == [0]
    assert worker.restarts == 0
    assert all("system.health" in letter["subject"] for letter in await letters(there))


@pytest.mark.parametrize("seed", range(4))
async def test_random_bytes_never_stop_the_data_lane(
    there: Settings, connection: Connection, seed: int
) -> None:
    chance = random.Random(seed)
    await make_stream(there)
    worker = lane_worker("one", there, SeriesAlarms())
    names = [SOURCE, "Nats-Msg-Id", "Nats-TTL", "Nats-Rollup", "Nats-Expected-Stream", "Tocsin-Lineage", "X"]
    async with running(worker), raw_producer(there) as hostile:
        for number in range(60):
            name = chance.choice(names) + chance.choice(["", " ", "\t", "  "])
            value = bytes(chance.randrange(1, 256) for _ in range(chance.randrange(20)))
            header = name.encode() + b":" + value.replace(b"\r", b"").replace(b"\n", b"")
            subject = f"{there.subjects}.datapoint." + chance.choice(
                [
                    "plant.system.health",
                    "~1.~canary",
                    "%zz.key",
                    "a.~canary",
                    "plant.k",
                    "~calculated.plant.k",
                    "é.ü",
                ]
            )
            body = bytes(chance.randrange(256) for _ in range(chance.randrange(50)))
            await hostile.publish(subject, chance.choice([body, HEALTH, b'{"value": "x"}']), header + b"\r\n")
            if number % 20 == 0:
                await hostile.publish(f"{there.subjects}.datapoint.other.temperature", b'{"value": 5}')
        await wait_for_rows(connection, "(select 1 from tocsin.datapoint where owner = 'other') as other", 3)
    assert worker.restarts == 0
    assert [row["last_source_seq"] for row in await partitions(connection)] == [0]


REPORTS: list[tuple[str, Any]] = [
    ("{id}.99999999999", {"state": "completed"}),
    ("{id}.2147483648", {"state": "completed"}),
    ("{id}.-1", {"state": "completed"}),
    ("{id}.1_0", {"state": "completed"}),
    ("{id}.\u0661", {"state": "completed"}),
    ("{id}.0", {"state": "completed", "attempt": 2**31}),
    ("{id}.0", {"state": "completed", "attempt": 10**30}),
    ("{id}.0", {"state": "failed", "error": "x" * 300_000}),
    ("{id}.0", {"state": "failed", "error": "\x00"}),
    ("{id}.0", {"state": "completed", "result": {"a": "\x00"}}),
    ("{id}.0", b"\xff\xfe"),
    ("{id}.0", b'{"state": "completed", "result": ' + b'{"a":' * 500 + b"1" + b"}" * 501),
    ("urn:uuid:{id}.0", {"state": "completed"}),
    ("x.y.z", {"state": "completed"}),
    ("{id}", {"state": "completed"}),
]


async def test_no_report_stops_the_reports_of_others(there: Settings, connection: Connection) -> None:
    """F2: a step number beyond an integer was raised as a fault of the database."""
    consumer = Service("reports", ReportConsumer(there).run)
    async with running(consumer):
        await _wait_for_stream(there, there.report_stream)
        async with raw_producer(there) as hostile:
            for subject, body in REPORTS:
                raw = body if isinstance(body, bytes) else json.dumps(body).encode()
                await hostile.publish(f"{there.subjects}.report." + subject.format(id=uuid4()), raw)
            last = f"{there.subjects}.report.{UUID(int=1)}.7777"
            await hostile.publish(last, b"[]")

            async def is_read() -> bool:
                return any(letter["subject"] == last for letter in await letters(there))

            await eventually(is_read, "the last report is read", 30)
        found = await letters(there)
    assert consumer.restarts == 0
    # Reports about unknown runs are rejected too; not one of the messages is lost without a trace.
    assert len(found) == len(REPORTS) + 1


async def test_no_event_stops_the_events_of_others(there: Settings, connection: Connection) -> None:
    chance = random.Random(7)
    ingester = Service("ingest", EventIngester(there).run)
    subject = f"{there.subjects}.ingest.event"
    async with running(ingester):
        await _wait_for_stream(there, there.ingest_stream)
        async with raw_producer(there) as hostile:
            for header in [
                *FORGED,
                "Tocsin-Lineage: \xff,,,",
                "Tocsin-Correlation-Id: x",
                "Tocsin-Lineage: " + "a," * 900,
            ]:
                event = {"id": str(uuid4()), "type": "noted", "owner": "mallory", "payload": {}}
                await hostile.publish(subject, json.dumps(event).encode(), header.encode() + b"\r\n")
                body = bytes(chance.randrange(256) for _ in range(chance.randrange(60)))
                await hostile.publish(subject, body, header.encode() + b"\r\n")
            good = {"id": "good", "type": "noted", "owner": "shop", "payload": {}}
            await hostile.publish(subject, json.dumps(good).encode())
        await wait_for_rows(connection, "(select 1 from tocsin.event where owner = 'shop') as good", 1)
    assert ingester.restarts == 0


async def _wait_for_stream(settings: Settings, name: str) -> None:
    async def is_there() -> bool:
        return await has_stream(settings, name)

    await eventually(is_there, f"the stream {name} exists", 30)
