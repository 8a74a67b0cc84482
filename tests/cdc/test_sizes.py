"""Records that pass the size checks fit into a NATS message. Any other becomes a tombstone, and the log continues."""

from __future__ import annotations

import json

import psycopg
import pytest

from cdc.log_reader import LogReader
from tests.cdc.published_records import T0, append, bodies, live, publish_all, published
from tests.sql import all_rows
from tocsin.core.db import Connection
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.core.settings import Settings

MAX_PAYLOAD_BYTES = 229_376
MAX_ENVELOPE_BYTES = 262_144
# Names of the largest length: of the character that is longest in JSON, and of the one that is longest
# in a subject.
WORST_IN_JSON, WORST_IN_SUBJECT = "\x01" * 128, "\U0001f514" * 128


def of_size(size: int) -> dict[str, str]:
    """A payload that Postgres writes with exactly `size` bytes."""
    return {"text": "x" * (size - len('{"text": ""}'))}


async def test_the_largest_record_makes_an_envelope_of_at_most_256_kb_and_arrives_whole(
    settings: Settings, connection: Connection
) -> None:
    for worst in (WORST_IN_JSON, WORST_IN_SUBJECT):
        largest = NewEvent(
            ts=T0,
            origin="scheduled",
            type="x" * 128,
            payload=of_size(MAX_PAYLOAD_BYTES),
            schedule=worst,
            rule=worst,
            action=worst,
            owner=worst,
        )
        await append_events(connection, [largest])
    sizes = [
        len(record.body(f"tocsin/{settings.namespace}")) for record in await LogReader(connection).read(0, 2)
    ]
    assert min(sizes) > MAX_PAYLOAD_BYTES
    assert max(sizes) <= MAX_ENVELOPE_BYTES
    await publish_all(settings)
    assert len(await published(settings, connection)) == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"payload": of_size(MAX_PAYLOAD_BYTES + 1)},
        {"type": "a.b"},
        {"type": ""},
        {"owner": "x" * 129},
        {"rule": "x" * 129},
    ],
    ids=["payload", "type with a dot", "empty type", "owner", "rule"],
)
async def test_an_invalid_or_too_large_record_is_refused_when_it_is_appended(
    connection: Connection, changed: dict[str, object]
) -> None:
    fields = {"ts": T0, "origin": "caused", "type": "noted", **changed}
    with pytest.raises(psycopg.errors.CheckViolation):
        await append_events(connection, [NewEvent(**fields)])  # type: ignore[arg-type]


async def test_a_subject_longer_than_a_line_of_nats_becomes_a_tombstone(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 1)
    await connection.execute(
        "select tocsin.append(calculated => array[row(gen_random_uuid(), %s, %s, tocsin.instant(), 'stale', null,"
        " '{}')::tocsin.calculated_input])",
        (WORST_IN_SUBJECT, WORST_IN_SUBJECT * 2),
    )
    await append(connection, 1)
    async with live(settings) as publisher:
        await publisher.drain()
        assert (publisher.broken, publisher.bus.stats["reconnects"]) == (0, 0)
    first, long, last = await bodies(settings)
    assert (first["type"], last["type"]) == ("noted", "noted")
    (row,) = await all_rows(connection, "select id from tocsin.datapoint_calculated where seq = 2")
    assert (long["type"], long["id"], long["kind"]) == (
        "record-unsendable",
        str(row["id"]),
        "calculated-datapoint",
    )
    assert "its subject takes 46" in long["data"]["reason"]


async def test_a_body_of_more_than_a_megabyte_becomes_a_tombstone(
    settings: Settings, connection: Connection
) -> None:
    """The check of the table is dropped first, as if a later migration had omitted it."""
    await connection.execute("alter table tocsin.event drop constraint event_payload_check")
    await append(connection, 1)
    await append_events(connection, [NewEvent(T0, "caused", "noted", of_size(1_100_000), owner="a b")])
    await append(connection, 1)
    await publish_all(settings)
    first, large, last = await bodies(settings)
    assert (first["type"], last["type"]) == ("noted", "noted")
    (row,) = await all_rows(connection, "select id from tocsin.event where seq = 2")
    assert (large["type"], large["id"], large["seq"]) == ("record-unsendable", str(row["id"]), 2)
    assert "nats accepts 1048576 (max_payload)" in large["data"]["reason"]
    assert len(json.dumps(large)) < 1000
