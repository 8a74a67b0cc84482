"""Rules over other alarms, on the record lane: in the order of the log, whatever the data lane does."""

from __future__ import annotations

import pytest

from clock.term import begin_term
from rules.alarms.explain import explain_alarm
from rules.alarms.over_events import EventAlarms
from rules.alarms.queries import list_alarms
from rules.alarms.resolve import resolve
from rules.engine import CompiledRules
from tests.clock.clock_setup import at, drain
from tests.records import events
from tests.rules.alarms.alarm_batches import arrival, compiled, virtual_now, write_batch
from tests.rules.alarms.event_batches import process
from tests.rules.apply.apply_setup import put
from tocsin.core.audit import Actor
from tocsin.core.db import Connection

SERIES = """
event_rule: {name: hot, datapoint: heat, above: 60}
---
event_rule: {name: slow, datapoint: flow, below: 10}
---
"""
BOTH = "event_rule: {name: both, alarms: {all_of: [hot, slow]}, severity: critical}\n"


class Lanes:
    """Both lanes of an instance. The record lane reads only when it is told to."""

    def __init__(self, connection: Connection, rules: CompiledRules) -> None:
        self.connection = connection
        self._rules = rules
        self._work = EventAlarms()
        self._read = 0

    async def send(self, seconds: float, key: str, value: float, owner: str = "p") -> None:
        await virtual_now(self.connection, at(seconds))
        await write_batch(self.connection, self._rules, [arrival(seconds, value, owner, key)])

    async def read(self, upto: int | None = None) -> None:
        last = (await events(self.connection))[-1]["seq"]
        await process(self.connection, self._work, self._read, upto)
        self._read = min(last, upto or last)
        await self.connection.execute(
            "update tocsin.lane_partition set last_seq = %s, watermark = tocsin.instant() where lane = 'record'",
            (self._read,),
        )

    async def transitions(self, rule: str = "both") -> list[tuple[str, str, float]]:
        return [
            (row["type"].removeprefix("alarm-"), row["owner"], (row["ts"] - at(0)).total_seconds())
            for row in await events(self.connection)
            if row["rule"] == rule
        ]


@pytest.fixture
async def lanes(connection: Connection) -> Lanes:
    await virtual_now(connection, at(0))
    await connection.execute(
        "insert into tocsin.lane_partition (lane, partition) values ('record', 0), ('data', 0)"
    )
    await put(connection, SERIES + BOTH)
    return Lanes(connection, compiled(SERIES))


async def test_it_opens_with_the_last_alarm_that_it_needs_and_resolves_with_the_first_that_ends(
    lanes: Lanes,
) -> None:
    await lanes.send(1, "heat", 70)
    await lanes.send(2, "flow", 5, owner="other")
    await lanes.send(3, "flow", 5)
    await lanes.read()
    await lanes.send(9, "heat", 50)
    await lanes.read()
    assert await lanes.transitions() == [("opened", "p", 3), ("resolved", "p", 9)]
    opened, resolved = [row for row in await events(lanes.connection) if row["rule"] == "both"]
    assert opened["payload"]["message"] == "hot and slow of p are open"
    assert [alarm["rule"] for alarm in opened["payload"]["payload"]["alarms"]] == ["hot", "slow"]
    assert resolved["payload"]["message"] == "all of hot, slow no longer holds for p"
    assert opened["severity"] == 5


async def test_the_order_of_the_log_decides_however_late_the_lane_reads_it(lanes: Lanes) -> None:
    """When the lane reads, both alarms have been resolved: the log has all four transitions."""
    await lanes.send(1, "heat", 70)
    await lanes.send(3, "flow", 5)
    await lanes.send(4, "heat", 50)
    await lanes.send(5, "flow", 50)
    await virtual_now(lanes.connection, at(100))
    await lanes.read()
    assert await lanes.transitions() == [("opened", "p", 3), ("resolved", "p", 4)]


async def test_a_sustain_counts_from_the_last_alarm(lanes: Lanes) -> None:
    await put(lanes.connection, BOTH.replace("}, sev", "}, for: 10s, sev"))
    await lanes.send(1, "heat", 70)
    await lanes.send(3, "flow", 5)
    await lanes.read()
    await lanes.connection.execute("update tocsin.lane_partition set watermark = %s", (at(20),))
    await virtual_now(lanes.connection, at(20))
    await drain(await begin_term(lanes.connection, "test"), at(20))
    assert await lanes.transitions() == [("opened", "p", 13)]


async def test_a_rule_that_is_applied_later_reads_the_alarms_that_are_open(lanes: Lanes) -> None:
    await lanes.send(1, "heat", 70)
    await lanes.send(2, "flow", 5)
    await virtual_now(lanes.connection, at(8))
    await put(lanes.connection, "event_rule: {name: either, alarms: {any_of: [hot, slow]}}")
    await lanes.read()
    assert await lanes.transitions("either") == [("opened", "p", 8)]
    await lanes.send(9, "heat", 50)
    await lanes.read()
    assert await lanes.transitions("either") == [("opened", "p", 8)], "the other alarm is still open"
    await lanes.send(10, "flow", 50)
    await lanes.read()
    assert await lanes.transitions("either") == [("opened", "p", 8), ("resolved", "p", 10)]


async def test_a_rule_begins_with_the_alarms_of_its_own_seq(lanes: Lanes) -> None:
    """The data lane is ahead of the record lane: what it did after the apply does not count there."""
    await lanes.send(1, "heat", 70)
    await virtual_now(lanes.connection, at(4))
    await put(lanes.connection, "event_rule: {name: either, alarms: {any_of: [hot, slow]}, for: 1s}")
    await lanes.send(5, "flow", 5)
    await lanes.send(6, "heat", 50)
    await lanes.send(7, "flow", 50)
    await lanes.read()
    assert await lanes.transitions("either") == [("opened", "p", 5), ("resolved", "p", 7)]


async def test_a_changed_condition_applies_to_the_alarms_that_are_open(lanes: Lanes) -> None:
    await lanes.send(1, "heat", 70)
    await lanes.read()
    await virtual_now(lanes.connection, at(5))
    await put(lanes.connection, BOTH.replace("all_of", "any_of"))
    await lanes.read()
    await virtual_now(lanes.connection, at(6))
    await put(lanes.connection, BOTH)
    await lanes.read()
    assert await lanes.transitions() == [("opened", "p", 5), ("resolved", "p", 6)]


async def test_a_reference_that_was_dropped_and_comes_back_is_read_again(lanes: Lanes) -> None:
    """`slow` was resolved while the rule did not refer to it."""
    either = "event_rule: {name: both, alarms: {any_of: [hot, slow]}}\n"
    await put(lanes.connection, either)
    await lanes.send(1, "flow", 5)
    await lanes.read()
    await put(lanes.connection, either.replace(", slow", ""))
    await lanes.read()
    await lanes.send(3, "flow", 50)
    await lanes.read()
    await virtual_now(lanes.connection, at(5))
    await put(lanes.connection, either)
    await lanes.read()
    assert [transition for transition, _, _ in await lanes.transitions()] == ["opened", "resolved"]


async def test_a_removed_reference_resolves_its_alarm_and_so_the_condition(lanes: Lanes) -> None:
    await lanes.send(1, "heat", 70)
    await lanes.send(2, "flow", 5)
    await lanes.read()
    await virtual_now(lanes.connection, at(5))
    await put(lanes.connection, "event_rule: {name: slow, datapoint: flow, below: 10, enabled: false}")
    await lanes.read()
    assert await lanes.transitions() == [("opened", "p", 2), ("resolved", "p", 5)]


async def test_an_operator_who_resolves_it_is_not_overruled_before_it_was_clear(lanes: Lanes) -> None:
    await put(lanes.connection, "event_rule: {name: both, alarms: {any_of: [hot, slow]}}\n")
    await lanes.send(1, "heat", 70)
    await lanes.read()
    (alarm,) = await list_alarms(lanes.connection, rule="both")
    await resolve(lanes.connection, alarm, Actor("bob", "test", at(2)))
    await lanes.send(3, "flow", 5)
    await lanes.read()
    assert [row for row in await lanes.transitions() if row[0] == "opened"] == [("opened", "p", 1)]
    await lanes.send(4, "heat", 50)
    await lanes.send(5, "flow", 50)
    await lanes.send(6, "heat", 70)
    await lanes.read()
    assert (await lanes.transitions())[-1] == ("opened", "p", 6)


async def test_rules_over_alarms_can_be_nested(lanes: Lanes) -> None:
    await put(lanes.connection, "event_rule: {name: top, alarms: {all_of: [both]}}\n")
    await lanes.send(1, "heat", 70)
    await lanes.send(2, "flow", 5)
    await lanes.read()
    await lanes.read()
    assert [row[:2] for row in await lanes.transitions("top")] == [("opened", "p")]


async def test_explain_shows_the_state_of_what_it_refers_to(lanes: Lanes) -> None:
    await put(lanes.connection, "event_rule: {name: both, alarms: {at_least: 1, of: [hot, slow]}}\n")
    await lanes.send(1, "heat", 70)
    await lanes.read()
    (alarm,) = await list_alarms(lanes.connection, rule="both")
    explanation = await explain_alarm(lanes.connection, alarm, at(10))
    hot, slow = explanation.history[-2:]
    assert hot.startswith("refers to: hot is open since ")
    assert slow == "refers to: slow is not open"
    assert [row["state"] for row in explanation.facts["refers_to"]] == ["open", "not open"]
