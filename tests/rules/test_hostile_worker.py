"""A hostile producer against a whole worker: bytes of the NATS protocol by hand, on every subject that
it may publish on. Other owners' work goes on, within bounded time, and no part restarts.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from uuid import uuid4

import pytest

from cdc.publisher import Publisher
from rules.worker import Worker
from tests.cdc.published_records import smaller, with_long_timeouts
from tests.rules.apply.apply_setup import action, put, rule
from tests.rules.lanes.lane_setup import has_stream, wait_for_rows
from tests.rules.lanes.raw_producer import RawProducer, raw_producer
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

Chance = random.Random
_MESSAGES = 120
_WITHIN_S = 60.0
_HEADERS = (
    *(
        "Nats-Stream-Source",
        "Nats-Msg-Id",
        "Nats-TTL",
        "Nats-Rollup",
        "Nats-Expected-Stream",
        "Nats-Schedule",
    ),
    *(
        "Nats-Expected-Last-Sequence",
        "Nats-Batch-Id",
        "Nats-Incr",
        "Nats-Marker-Reason",
        "Status",
        "Description",
    ),
    *("Tocsin-Lineage", "Tocsin-Correlation-Id", "Tocsin-Arrived-At", "Tocsin-Report", "traceparent", "X"),
)
_NASTY = (
    *(b"", b"{", b"[]", b"null", b"1e999", b'"\\ud800"', b"\xff\xfe", b'{"value": NaN}', b'{"value": 1e400}'),
    *(b'{"value": ' + b"9" * 5_000 + b"}", b'{"batch": []}', b'{"batch": [' + b"1," * 500 + b"1]}"),
    *(b'{"batch": ' + b"[" * 2_000 + b"]" * 2_000 + b"}", b'{"value": 1, "labels": {"a": {}}}'),
    *(b'{"value": 1, "ts": "0001-01-01T00:00:00Z"}', b'{"value": 1, "ts": "9999-12-31T23:59:59+23:59"}'),
    *(b'{"value": "\\u0000"}', b'{"value": 1, "key": "~canary"}', b'{"value": "' + b"x" * 100_000 + b'"}'),
)


def random_bytes(chance: Chance, most: int) -> bytes:
    return bytes(chance.randrange(256) for _ in range(chance.randrange(most)))


def header(chance: Chance) -> bytes:
    name = chance.choice(_HEADERS) + chance.choice(["", " ", "\t"])
    value = chance.choice([b"", b"1", b"-1", b"9" * 40, b"tocsin 5 > > x", random_bytes(chance, 30)])
    line = name.encode() + b":" + value.replace(b"\r", b"").replace(b"\n", b"")
    return (line + b"\r\n") * chance.choice([1, 1, 1, 20])


def datapoint(chance: Chance) -> tuple[str, bytes]:
    owner = chance.choice(["mallory", "~1", "~calculated", "%zz", "%00", "a" * 300, "_", "é", "%E9"])
    key = chance.choice(
        ["k", "system.health", "~canary", "calc.x", "_", "a.b.c", "%2E", "x" * 300, "k{core}"]
    )
    body = chance.choice([*_NASTY, random_bytes(chance, 80), b'{"value": 1}'])
    return f"datapoint.{owner}.{key}", body


def event(chance: Chance) -> tuple[str, bytes]:
    fields: dict[str, object] = {
        "id": chance.choice([str(uuid4()), "", "x" * 300, "good", "\0"]),
        "type": chance.choice(["noted", "alarm-opened", "quota-exceeded", "", "a b", "x" * 200]),
        "owner": chance.choice(["mallory", "", "\0", "x" * 200]),
        "payload": chance.choice([{}, [], None, {"a": "\0"}, {"a": 10**400}, {"a": {"b": [1] * 50}}]),
        "ts": chance.choice([None, "x", "9999-12-31T23:59:59Z", "1969-01-01T00:00:00Z", 5]),
        "severity": chance.choice([None, "high", "nonsense", 5]),
    }
    subject = chance.choice(["ingest.event", "ingest.event.mallory", "ingest.event.%zz", "ingest.event._"])
    return subject, chance.choice([json.dumps(fields).encode(), *_NASTY, random_bytes(chance, 80)])


def report(chance: Chance) -> tuple[str, bytes]:
    step = chance.choice(["0", "-1", "99999999999", "1_0", "\u0661", "0x1", ""]) or "_"
    subject = chance.choice([f"report.{uuid4()}.{step}.{'0' * 32}", f"report.{step}", f"report.{uuid4()}"])
    body: dict[str, object] = {
        "state": chance.choice(["completed", "failed", "due", None]),
        "attempt": chance.choice([None, 1, 2**31, -1, 10**30]),
        "result": chance.choice([{}, [], {"a": "\0"}, {"a": "x" * 70_000}]),
        "error": chance.choice([None, "\0", "x" * 70_000]),
    }
    return subject, chance.choice([json.dumps(body).encode(), *_NASTY, random_bytes(chance, 80)])


def dead(chance: Chance) -> tuple[str, bytes]:
    """Forged dead letters: a producer without restricted permissions may write them."""
    kind = chance.choice(["datapoint", "event", "record", "report", "step", "x"])
    return f"dead.{kind}", chance.choice([*_NASTY, random_bytes(chance, 80)])


DOORS: dict[str, Callable[[Chance], tuple[str, bytes]]] = {
    "datapoints": datapoint,
    "events": event,
    "reports": report,
    "dead letters": dead,
}


async def flood(hostile: RawProducer, prefix: str, chance: Chance, door: str) -> None:
    for _ in range(_MESSAGES):
        subject, body = DOORS[door](chance)
        await hostile.publish(f"{prefix}.{subject}", body, header(chance) if chance.random() < 0.7 else b"")


async def work_of_others(settings: Settings, connection: Connection, good: RawProducer) -> None:
    """A datapoint is stored, an event is appended, and the run that it starts is completed."""
    prefix = settings.subjects
    await good.publish(f"{prefix}.datapoint.other.temperature", b'{"value": 5}')
    body = {"id": str(uuid4()), "type": "asked", "owner": "other", "payload": {}}
    await good.publish(f"{prefix}.ingest.event", json.dumps(body).encode())
    await wait_for_rows(connection, "tocsin.datapoint where owner = 'other'", 1, _WITHIN_S)
    await wait_for_rows(connection, "tocsin.action where state = 'completed'", 1, _WITHIN_S)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("seed", range(2))
async def test_no_message_stops_the_work_of_other_owners(
    settings: Settings, connection: Connection, door: str, seed: int
) -> None:
    there = with_long_timeouts(smaller(settings, data_partitions=1))
    await put(connection, action("answer") + rule("each", "answer", 'type == "asked"'))
    worker = Service("worker", Worker(there).run)
    streams = (there.data_stream, there.ingest_stream, there.report_stream, there.dead_stream)

    async def is_ready() -> bool:
        return worker.problem is None and all([await has_stream(there, name) for name in streams])

    async with running(Service("cdc", Publisher(there).run), worker):
        await eventually(is_ready, "the worker runs")
        restarts = worker.restarts
        async with raw_producer(there) as hostile, raw_producer(there) as good:
            await flood(hostile, there.subjects, random.Random(seed), door)
            await work_of_others(there, connection, good)
        assert worker.problem is None
        assert worker.restarts == restarts
    (row,) = await all_rows(
        connection, "select count(*) as n from tocsin.event where type in ('alarm-opened', 'alarm-resolved')"
    )
    assert row["n"] == 0


@pytest.mark.parametrize("status", ["404", "408", "409", "400", "503", "100", "x"])
async def test_a_message_that_looks_like_an_answer_of_the_server_stops_nothing(
    settings: Settings, connection: Connection, status: str
) -> None:
    """An empty message with the header `Status` was taken for the end of a request: the partition read
    it again and again, and nothing behind it."""
    there = with_long_timeouts(smaller(settings, data_partitions=1))
    await put(connection, action("answer") + rule("each", "answer", 'type == "asked"'))
    worker = Service("worker", Worker(there).run)
    forged = f"Status: {status}\r\nDescription: Consumer Deleted\r\nNats-Pin-Id: x\r\n".encode()

    async def is_ready() -> bool:
        streams = (there.data_stream, there.ingest_stream, there.report_stream)
        return worker.problem is None and all([await has_stream(there, name) for name in streams])

    async with running(Service("cdc", Publisher(there).run), worker):
        await eventually(is_ready, "the worker runs")
        async with raw_producer(there) as hostile, raw_producer(there) as good:
            for subject in ("datapoint.mallory.k", "ingest.event", "report.x"):
                await hostile.publish(f"{there.subjects}.{subject}", b"", forged)
            await work_of_others(there, connection, good)
        assert worker.problem is None


async def test_broken_protocol_lines_close_the_connection_of_the_sender_alone(
    settings: Settings, connection: Connection
) -> None:
    there = with_long_timeouts(smaller(settings, data_partitions=1))
    await put(connection, action("answer") + rule("each", "answer", 'type == "asked"'))
    worker = Service("worker", Worker(there).run)

    async def is_ready() -> bool:
        return worker.problem is None and await has_stream(there, there.ingest_stream)

    async with running(Service("cdc", Publisher(there).run), worker):
        await eventually(is_ready, "the worker runs")
        restarts = worker.restarts
        for line in (
            b"HPUB x 5 2\r\n",
            b"PUB\r\n",
            b"HPUB a 99999999999 1\r\n",
            b"\x00" * 5_000,
            b"PUB a -1\r\n",
        ):
            async with raw_producer(there) as hostile:
                await hostile.send_bytes(line)
        async with raw_producer(there) as good:
            await work_of_others(there, connection, good)
        assert worker.restarts == restarts
