"""Calculated datapoints share the log's sequence with events and steps, and travel in its order."""

from __future__ import annotations

import json

from cdc.log_reader import LogReader
from cdc.publisher import Publisher
from tests.streams import read_stream
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

APPEND = """
select tocsin.append(
    array[row(gen_random_uuid(), tocsin.instant(), 'external', 'noted', null, null, null, 'a', null, null, null, null,
              null, '{}')::tocsin.event_input],
    calculated => array[row(gen_random_uuid(), 'a', 'dsp.load', tocsin.instant(), 'stale', null,
                            '{"value": 7}')::tocsin.calculated_input])
"""


async def test_calculated_datapoints_take_the_last_seqs_of_their_transaction(connection: Connection) -> None:
    for last in (2, 4):
        assert (await (await connection.execute(APPEND)).fetchone()) == (last,)
    found = await LogReader(connection).read(0, 10)
    assert [(record.seq, type(record).__name__) for record in found] == [
        (1, "EventRow"),
        (2, "CalculatedRow"),
        (3, "EventRow"),
        (4, "CalculatedRow"),
    ]
    assert await LogReader(connection).id_at(2) == found[1].id


async def test_calculated_datapoints_are_published_on_their_own_subject(
    settings: Settings, connection: Connection
) -> None:
    await connection.execute(APPEND)
    async with running(Service("cdc", Publisher(settings).run)):
        event, calculated = await read_stream(settings, 2)
    assert calculated.subject == f"{settings.subjects}.staleness.a.dsp.load"
    body = json.loads(calculated.data)
    assert (body["seq"], body["kind"], body["data"]) == (2, "stale", {"value": 7})
    assert event.seq == 1
