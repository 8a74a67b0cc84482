"""A recording of real services under load, with an apply in the middle, replays identically."""

from __future__ import annotations

import random
from collections import Counter

from cdc.publisher import Publisher
from clock.service import Clock
from rules.apply import apply
from rules.documents.load import load_text
from rules.worker import Worker
from tests.rules.replay.backtest.recorded_instance import count_records, replayed
from tests.sql import one_row
from tests.wait import eventually
from timers.working_set import database_now
from tocsin.client.producer import Producer
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

FIRST = """
datapoint_type:
  name: load
  key: dsp.*
  interval: 200ms
---
event_rule:
  name: hot
  datapoint: dsp.*
  fire: value > 65.0
  clear: value < 60.0
  for: 300ms
---
event_rule:
  name: quiet
  datapoint: dsp.*
  absent: true
  for: 200ms
---
event_rule:
  name: tripped
  event: trip
  fire: payload.on == true
  for: 100ms
---
event_rule:
  name: alarming
  event: alarm-*
  fire: type == "alarm-opened" && rule == "hot"
---
event_rule:
  name: ill
  datapoint: system.health
  fire: value == "degraded"
---
system:
  name: plants
  members:
    - {owner: plant-0, type: load}
    - {owner: plant-1, key: dsp.a}
    - {owner: plant-2, key: dsp.b, required: false}
    - {owner: plant-3, type: load, required: false}
    - {owner: plant-4, key: dsp.a, required: false}
"""
SECOND = FIRST.replace("200ms", "150ms").replace("65.0", "68.0").replace("for: 100ms", "for: 250ms")
OWNERS = [f"plant-{number}" for number in range(12)]
KEYS = ("dsp.a", "dsp.b", "dsp.c")


async def put(connection: Connection, text: str) -> None:
    await apply(connection, load_text(text), Actor("tester", "test", await database_now(connection)))


async def load(settings: Settings, rounds: int, seed: int) -> int:
    """Send datapoints and return their number: of all series in the first round, then of some of them."""
    chance = random.Random(seed)
    sent = 0
    async with Producer(settings) as producer:
        for number in range(rounds):
            for owner in OWNERS:
                for key in KEYS:
                    if number == 0 or chance.random() < 0.7:
                        sent += 1
                        await producer.send(owner, key, chance.choice([50.0, 62.0, 66.0, 71.0, 80.0]))
                if chance.random() < 0.2:
                    await producer.emit("trip", owner=owner, payload={"on": chance.random() < 0.5})
            await producer.flush()
    return sent


async def test_a_recording_of_services_under_load_replays_identically(
    settings: Settings, connection: Connection
) -> None:
    begun = await database_now(connection)
    await put(connection, FIRST)
    async with running(
        Service("clock", Clock(settings).run),
        Service("cdc", Publisher(settings).run),
        Service("worker", Worker(settings).run),
        Service("another worker", Worker(settings).run),
    ):
        await eventually(lambda: has_lanes(connection), "the lanes are read")
        sent = await load(settings, 25, 1)
        await put(connection, SECOND)
        sent += await load(settings, 25, 2)
        await eventually(lambda: is_settled(connection), "everything that was sent is processed", within=60)
        sent += await load(settings, 5, 3)
        await eventually(lambda: is_settled(connection), "all series are stale again", within=60)
    until = await database_now(connection)
    _, result = await replayed(settings, begun, until)
    assert not result.mismatches, "\n".join(map(str, result.mismatches))
    transitions, calculated = await count_records(connection)
    assert (len(result.recorded_transitions), result.staleness_count + result.health_count) == (
        transitions,
        calculated,
    ), "everything was compared"
    rules = {transition.rule for transition in result.replayed_transitions}
    assert rules == {"hot", "quiet", "tripped", "alarming", "ill"}
    assert result.datapoints == sent + result.health_count, "health is a datapoint, too"
    assert result.health_count >= 4
    stale = Counter((one.owner, one.key) for one in result.replayed_staleness if one.kind == "stale")
    assert len(stale) == len(OWNERS) * len(KEYS)
    assert min(stale.values()) >= 2, "each became stale twice, on any machine"
    assert {
        transition.owner for transition in result.replayed_transitions if transition.rule == "quiet"
    } == set(OWNERS)


async def has_lanes(connection: Connection) -> bool:
    row = await one_row(
        connection, "select count(*) as n from tocsin.lane_partition where watermark is not null"
    )
    return bool(row["n"] == 9)


async def is_settled(connection: Connection) -> bool:
    """Whether all series are stale and handled, nothing is pending, all health has arrived, and every lane
    has read past the last record."""
    row = await one_row(
        connection,
        "select not exists (select from tocsin.timer) and not exists (select from tocsin.member_observation)"
        " and (select count(*) from tocsin.datapoint_calculated c where c.kind = 'health')"
        " = (select count(*) from tocsin.datapoint d where d.owner = 'plants')"
        " and not exists (select from tocsin.current_value c where c.freshness = 'fresh' and c.owner <> 'plants'"
        " or c.handled_stale_since is distinct from c.stale_since)"
        " and (select bool_and(p.watermark > (select max(e.recorded_at) from tocsin.event e)"
        " and p.watermark > (select max(e.recorded_at) from tocsin.datapoint_calculated e))"
        " from tocsin.lane_partition p) as settled",
    )
    return bool(row["settled"])
