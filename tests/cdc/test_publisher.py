"""Every committed record is in the stream, with the same id, at the sequence that is its seq."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from cdc.publisher import Publisher
from clock.term import begin_term
from tests.records import events
from tests.streams import read_stream
from timers.schedules import Act, ScheduleSpec, put_schedule
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


async def test_a_fire_arrives_in_the_stream_with_the_id_of_its_row(
    settings: Settings, connection: Connection
) -> None:
    await put_schedule(connection, ScheduleSpec("beat", {"every": "10s"}), Act("tester", "test", T0))
    term = await begin_term(connection, "test")
    for beat in range(1, 4):
        await term.run_once(T0 + timedelta(seconds=10 * beat))

    async with running(Service("cdc", Publisher(settings).run)):
        messages = await read_stream(settings, 3)

    rows = await events(connection)
    assert [message.seq for message in messages] == [row["seq"] for row in rows] == [1, 2, 3]
    assert [json.loads(message.data)["id"] for message in messages] == [str(row["id"]) for row in rows]
    assert messages[0].subject == f"{settings.namespace}.v1.event.scheduled.schedule-fired.beat._"
