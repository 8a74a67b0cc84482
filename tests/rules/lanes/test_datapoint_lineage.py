"""A datapoint that a run sends carries its lineage to the alarm that it opens or resolves."""

from __future__ import annotations

from cdc.publisher import Publisher
from rules.alarms.batch_writes import AlarmBatch, read_states, state_key
from rules.engine.cascade_depth import MAX_DEPTH
from rules.lanes.batch import PhasedPlan
from rules.lanes.lineage_store import read_lineages
from rules.worker import Worker
from schemas.wire.alarm_events import transition_event_id
from tests.rules.alarms.alarm_batches import HOT, arrival, compiled
from tests.rules.apply.apply_setup import actions, put
from tests.rules.lanes.lane_setup import send, wait_for_shares
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

FLIP = """
event_rule: {name: e, datapoint: temperature, above: 5}
---
action_rule: {name: rr, on: alarm, transitions: [opened, resolved], action: flip}
---
action: {name: flip, record: {key: temperature, value: "{{ 1 if alarm.state == 'open' else 9 }}"}}
"""


async def test_an_action_that_records_the_datapoint_of_its_own_alarm_is_started_once(
    settings: Settings, connection: Connection
) -> None:
    await put(connection, FLIP)
    async with (
        running(Service("cdc", Publisher(settings).run)),
        running(Service("worker", Worker(settings).run)),
    ):
        await wait_for_shares(connection, 8)
        await send(settings, [9], ["plant-7"])

        async def has_ended() -> bool:
            return [row["state"] for row in await actions(connection)] == ["completed", "skipped"]

        await eventually(has_ended, "the second start is suppressed", within=60)
    _, skipped = await actions(connection)
    assert skipped["error"] == "suppressed: it would start itself again, rr -> rr"
    events = await all_rows(
        connection, "select type from tocsin.event where alarm_id is not null order by seq"
    )
    assert [event["type"] for event in events] == ["alarm-opened", "alarm-resolved"]


async def test_the_event_of_a_sustain_has_the_lineage_of_the_datapoint_that_armed_it(
    connection: Connection,
) -> None:
    await connection.execute("insert into tocsin.lane_partition (lane, partition) values ('data', 0)")
    rules = compiled(HOT)
    (rule,) = rules.for_key("dsp.temperature")
    for owner, lineage in (("plant-7", ("rr",)), ("plant-8", ())):
        input = arrival(0, 70, owner=owner)
        batch = AlarmBatch("data", 0, await read_states(connection, [state_key(rule, input)]))
        batch.apply_input(rule, input, lineage=lineage)
        async with connection.transaction():
            await PhasedPlan([batch]).write(connection)
    alarms = {row["owner"]: row for row in await all_rows(connection, "select * from tocsin.alarm")}
    assert alarms["plant-7"]["state"] == "pending"
    events = {
        owner: transition_event_id(alarm["id"], "opened", alarm["since"]) for owner, alarm in alarms.items()
    }
    # An ordinary datapoint stores nothing.
    assert await read_lineages(connection, events.values()) == {events["plant-7"]: ("rr",)}


async def test_event_rules_that_trigger_each_other_end_with_a_recorded_reason(
    settings: Settings, connection: Connection
) -> None:
    await put(connection, EACH_OTHER)
    async with (
        running(Service("cdc", Publisher(settings).run)),
        running(Service("worker", Worker(settings).run)),
    ):
        await wait_for_shares(connection, 8)
        await send(settings, [9, 1], ["plant-7"])

        async def is_suppressed() -> bool:
            return bool(await all_rows(connection, SUPPRESSED))

        await eventually(is_suppressed, "the loop is cut", within=60)
    (event, *_) = await all_rows(connection, SUPPRESSED)
    assert "trigger each other" in event["payload"]["reason"]
    assert event["payload"]["depth"] == MAX_DEPTH


EACH_OTHER = """
event_rule: {name: k, datapoint: temperature, above: 5}
---
event_rule: {name: r1, event: "alarm-*", where: 'rule == "r2"', fire: 'type == "alarm-resolved"'}
---
event_rule:
  name: r2
  event: "alarm-*"
  where: 'rule == "r1" || rule == "k"'
  fire: 'type == "alarm-opened"'
"""
SUPPRESSED = "select * from tocsin.event where type = 'rules-suppressed' order by seq"
