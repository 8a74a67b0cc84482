"""Rules over events open and resolve alarms per owner, with the rules of the seq of each event."""

from __future__ import annotations

import uuid

import pytest

from clock.term import begin_term
from rules.alarms.over_events import EventAlarms
from rules.lanes.lane import LaneMessage
from rules.lanes.record_lane import RecordLane
from tests.clock.clock_setup import at, drain
from tests.records import events
from tests.rules.alarms.alarm_batches import alarms, arrival, compiled, virtual_now, write_batch
from tests.rules.alarms.event_batches import process
from tests.rules.apply.apply_setup import event_bodies, note, put
from tests.sql import all_rows
from tocsin.core.db import Connection
from tocsin.core.errors import Conflict
from tocsin.core.settings import Settings

LINK = """
event_rule:
  name: link
  event: link-*
  fire: 'type == "link-down"'
  clear: 'type == "link-up"'
  severity: critical
"""


@pytest.fixture(autouse=True)
async def record_lane(connection: Connection) -> None:
    await virtual_now(connection, at(0))
    await connection.execute("insert into tocsin.lane_partition (lane, partition) values ('record', 0)")


async def link(connection: Connection, seconds: float, state: str, owner: str = "a", **fields: object) -> int:
    await virtual_now(connection, at(seconds))
    return await note(connection, type=f"link-{state}", owner=owner, **fields)


async def test_an_event_opens_and_another_resolves(connection: Connection) -> None:
    await put(connection, LINK)
    work = EventAlarms()
    chain = uuid.uuid4()
    await link(connection, 1, "down", correlation_id=chain)
    await link(connection, 2, "down", owner="b")
    last = await link(connection, 3, "up")
    await process(connection, work)
    transitions = [row for row in await events(connection) if row["seq"] > last]
    assert [(row["type"], row["owner"], row["ts"]) for row in transitions] == [
        ("alarm-opened", "a", at(1)),
        ("alarm-opened", "b", at(2)),
        ("alarm-resolved", "a", at(3)),
    ]
    assert {row["correlation_id"] for row in transitions if row["owner"] == "a"} == {chain}
    assert {row["severity"] for row in transitions} == {5}
    assert [(row["owner"], row["state"]) for row in await alarms(connection)] == [
        ("a", "resolved"),
        ("b", "open"),
    ]
    assert transitions[0]["source_event_id"] is not None


async def test_a_resolve_in_a_later_batch_keeps_the_correlation(connection: Connection) -> None:
    await put(connection, LINK)
    chain = uuid.uuid4()
    work = EventAlarms()
    down = await link(connection, 1, "down", correlation_id=chain)
    await process(connection, work)
    await link(connection, 2, "up")
    await process(connection, work, after=down)
    assert [row["correlation_id"] for row in await events(connection) if row["alarm_id"]] == [chain, chain]


async def test_an_alarm_that_follows_another_in_one_batch_has_the_correlation_of_its_own_event(
    connection: Connection,
) -> None:
    await put(connection, LINK)
    first, second = uuid.uuid4(), uuid.uuid4()
    work = EventAlarms()
    down = await link(connection, 1, "down", correlation_id=first)
    await process(connection, work)
    await link(connection, 2, "up")
    await link(connection, 3, "down", correlation_id=second)
    await process(connection, work, after=down)
    found = [row["correlation_id"] for row in await events(connection) if row["alarm_id"]]
    assert found == [first, first, second]
    assert [row["correlation_id"] for row in await alarms(connection)] == [first, second]


async def test_an_event_before_its_rule_is_not_evaluated(connection: Connection) -> None:
    await link(connection, 1, "down")
    await put(connection, LINK)
    await process(connection, EventAlarms())
    assert await alarms(connection) == []


async def test_each_event_is_evaluated_with_the_version_of_its_time(connection: Connection) -> None:
    await put(connection, LINK)
    await link(connection, 1, "down", owner="old")
    await put(connection, LINK.replace("link-down", "link-lost"))
    await link(connection, 2, "down", owner="new")
    await link(connection, 3, "lost", owner="lost")
    await process(connection, EventAlarms())
    assert [row["owner"] for row in await alarms(connection)] == ["old", "lost"]


async def test_a_sustain_over_events_waits_until_the_lane_has_read_that_far(connection: Connection) -> None:
    await put(connection, LINK.replace("severity", "for: 10s\n  severity"))
    await link(connection, 1, "down")
    await process(connection, EventAlarms())
    term = await begin_term(connection, "test")
    await drain(term, at(20))
    assert [row["state"] for row in await alarms(connection)] == ["pending"]
    await connection.execute("update tocsin.lane_partition set watermark = %s", (at(11.000001),))
    await drain(term, at(21))
    (row,) = await alarms(connection)
    assert (row["state"], row["opened_at"]) == ("open", at(11))


async def test_states_belong_to_the_record_lane(connection: Connection) -> None:
    await put(connection, LINK)
    await link(connection, 1, "down")
    await process(connection, EventAlarms())
    found = await all_rows(connection, "select lane, partition, phase from tocsin.rule_state")
    assert found == [{"lane": "record", "partition": 0, "phase": "open"}]


async def test_an_alarm_of_a_rule_that_was_disabled_meanwhile_ends_with_the_apply(
    connection: Connection,
) -> None:
    """The lane is behind: it reads the event after its rule was disabled."""
    await put(connection, LINK)
    await link(connection, 1, "down")
    await virtual_now(connection, at(5))
    await put(connection, LINK.replace("  severity", "  enabled: false\n  severity"))
    await process(connection, EventAlarms())
    (row,) = await alarms(connection)
    assert (row["state"], row["opened_at"], row["resolved_at"]) == ("resolved", at(1), at(5))
    assert row["resolved_reason"] == "rule-disabled"


async def test_an_apply_that_leaves_a_rule_alone_leaves_its_alarm_alone(connection: Connection) -> None:
    await put(connection, LINK)
    await link(connection, 1, "down")
    await virtual_now(connection, at(5))
    await put(connection, LINK.replace("name: link", "name: other"))
    await process(connection, EventAlarms())
    assert [(row["event_rule"], row["state"]) for row in await alarms(connection)] == [("link", "open")]


async def test_a_batch_that_would_change_nothing_is_planned_again_if_rules_were_applied_meanwhile(
    settings: Settings, connection: Connection
) -> None:
    """It was planned while the alarm was open.

    An apply ends the alarm, so the event begins another.
    """
    await put(connection, LINK)
    await link(connection, 1, "down")
    await process(connection, EventAlarms())
    again = await link(connection, 2, "down")
    (body,) = await event_bodies(connection, again - 1)
    message = LaneMessage(again, at(2), f"{settings.subjects}.event.x", body)
    planned = await RecordLane(settings, [EventAlarms()]).plan(connection, 0, [message])
    await virtual_now(connection, at(5))
    await put(connection, LINK.replace("  severity", "  enabled: false\n  severity"))
    with pytest.raises(Conflict):
        async with connection.transaction():
            await planned.write(connection)
    await process(connection, EventAlarms(), after=again - 1)
    opened = [(row["opened_at"], row["state"]) for row in await alarms(connection)]
    assert opened == [(at(1), "resolved"), (at(2), "resolved")]


async def test_an_alarm_of_an_earlier_batch_ends_when_the_apply_is_read(connection: Connection) -> None:
    """The lane was behind when its rule was disabled, and reads the apply in another batch."""
    await put(connection, LINK)
    down = await link(connection, 1, "down")
    await virtual_now(connection, at(5))
    await put(connection, LINK.replace("  severity", "  enabled: false\n  severity"))
    await process(connection, EventAlarms(), upto=down)
    assert [row["state"] for row in await alarms(connection)] == ["open"]
    await process(connection, EventAlarms(), after=down)
    assert [row["state"] for row in await alarms(connection)] == ["resolved"]


async def test_each_event_of_one_commit_begins_its_own_alarm_even_if_an_apply_comes_between(
    connection: Connection,
) -> None:
    """Events of one commit share their instant. An apply between them deletes the state in which
    one of them had already begun an alarm."""
    await put(connection, LINK)
    await link(connection, 1, "down")
    up = await link(connection, 1, "up")
    await link(connection, 1, "down")
    await process(connection, EventAlarms(), upto=up)
    await virtual_now(connection, at(5))
    await put(connection, LINK.replace("  severity", "  enabled: false\n  severity"))
    await process(connection, EventAlarms(), after=up)
    ended = [(row["opened_at"], row["resolved_at"], row["state"]) for row in await alarms(connection)]
    assert sorted(ended) == [(at(1), at(1), "resolved"), (at(1), at(5), "resolved")]


async def test_an_apply_is_evaluated_with_the_rules_before_it(connection: Connection) -> None:
    over_applies = LINK.replace("link-*", "rules-*").replace("link-down", "rules-applied")
    over_applies = over_applies.replace("link-up", "rules-suppressed")
    await put(connection, over_applies)
    work = EventAlarms()
    await process(connection, work)
    assert await alarms(connection) == []
    await put(connection, LINK.replace("name: link", "name: other"))
    await process(connection, work)
    assert [row["event_rule"] for row in await alarms(connection)] == ["link"]


async def test_the_record_lane_does_not_change_alarms_over_series(connection: Connection) -> None:
    """An apply disabled their rule, another enabled it again.

    The record lane is late, and reads the first.
    """
    series = "---\nevent_rule:\n  name: hot\n  datapoint: dsp.temperature\n  above: 65\n"
    await put(connection, LINK + series)
    await put(connection, LINK + series + "  enabled: false\n")
    await put(connection, LINK + series)
    await connection.execute("insert into tocsin.lane_partition (lane, partition) values ('data', 0)")
    await write_batch(connection, compiled(series), [arrival(9, 71.2)])
    await process(connection, EventAlarms())
    assert [(row["event_rule"], row["state"]) for row in await alarms(connection)] == [("hot", "open")]
