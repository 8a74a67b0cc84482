"""Operators' events from before the window are known in it, from the database and from a file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from clock.retention.prune import prune
from rules.alarms.operator import acknowledge, snooze
from rules.alarms.queries import list_alarms
from rules.replay.backtest.candidates import candidate_documents
from rules.replay.backtest.parallel import backtest
from rules.replay.backtest.recording.database import open_database_recording
from rules.replay.backtest.recording.model import OwnerHeader, RecordedEvent, Recording
from rules.replay.backtest.recording.recording import FileRecording, write_recording
from rules.replay.backtest.result import BacktestResult
from tests.clock.clock_setup import at
from tests.clock.retention.old_log import fill, mark_read_up_to
from tests.core.log_partitions import small_partitions
from tests.rules.alarms.alarm_batches import virtual_now
from tests.rules.apply.apply_setup import note
from tests.rules.replay.backtest.recorded_instance import RecordedInstance
from tests.rules.replay.backtest.simulated_recording import sent
from tests.sessions import Sessions
from tests.sql import one_row
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

DAY = 86_400.0
RULES = """
event_rule: {name: hot, datapoint: dsp.a, fire: value > 65.0, clear: value < 60.0, notify: [ops]}
---
channel: {name: ops, webhook: {url: "https://hooks.example.com/1"}, send_resolved: false}
---
action:
  name: say
  steps:
    - branch: {when: alarm.snoozed && alarm.acknowledged, then: [channel: {name: ops, text: x}]}
---
action_rule: {name: resolved, on: alarm, transitions: [resolved], action: say}
"""


@pytest.fixture
async def live(settings: Settings, connection: Connection, sessions: Sessions) -> RecordedInstance:
    """Four alarms that resolve on the third day.

    The first is snoozed until the fourth day, and acknowledged. The second was unsnoozed, and the
    snooze of the third ended, before the window. The fourth is snoozed in the window; the event that
    an action emits about it before is not an operator's.
    """
    await small_partitions(connection, 8)
    instance = RecordedInstance(settings, sessions)
    await instance.begin()
    await instance.apply_only(RULES, 0)
    for number in (1, 2, 3, 4):
        await instance.arrive([instance.arrival(10, 80.0, "dsp.a", f"plant-{number}")])
        await connection.execute("select tocsin.extend_log()")
    alarms = {row["owner"]: row for row in await list_alarms(connection)}

    async def snooze_at(second: float, owner: str, until: float | None) -> None:
        await virtual_now(connection, at(second))
        await connection.execute("select tocsin.extend_log()")
        instant = None if until is None else at(until)
        await snooze(connection, alarms[owner], Actor("ann", "test", at(second)), instant)

    await snooze_at(20, "plant-1", 30)
    await snooze_at(21, "plant-1", 4 * DAY)
    await acknowledge(connection, alarms["plant-1"], Actor("bob", "test", at(22)), "on it")
    await snooze_at(23, "plant-2", 4 * DAY)
    await snooze_at(24, "plant-2", None)
    await snooze_at(25, "plant-3", 60)
    await note(connection, alarm_id=alarms["plant-4"]["id"], owner="plant-4")
    await note(
        connection, type="alarm-snoozed", action="say", alarm_id=alarms["plant-4"]["id"], owner="plant-4"
    )
    await instance.settle(100)
    await fill(connection, 16, at=timedelta(minutes=5))
    await snooze_at(2.2 * DAY, "plant-4", 2.3 * DAY)
    await instance.set_time(2.3 * DAY)
    await instance.run_clock(2.3 * DAY)
    await instance.set_time(2.5 * DAY)
    await instance.arrive([instance.arrival(2.5 * DAY, 50.0, "dsp.a", f"plant-{n}") for n in (1, 2, 3, 4)])
    await instance.settle(5 * DAY)
    return instance


@asynccontextmanager
async def window(settings: Settings) -> AsyncIterator[Recording]:
    async with open_database_recording(settings, at(2 * DAY), at(5 * DAY)) as source:
        yield source


async def operator_events(source: Recording) -> dict[str, list[RecordedEvent]]:
    items = [item async for _, item in source.items(0, 1)]
    return {
        item.owner: [event for alarm in item.open_alarms for event in alarm.operator_events]
        for item in items
        if isinstance(item, OwnerHeader) and item.open_alarms
    }


EXPECTED = {
    "plant-1": ["alarm-snoozed", "alarm-snoozed", "alarm-acknowledged"],
    "plant-2": ["alarm-snoozed", "alarm-unsnoozed"],
    "plant-3": ["alarm-snoozed"],
    "plant-4": [],
}


async def replay_window(source: Recording, tmp_path: Path, text: str | None = None) -> BacktestResult:
    header = await source.header()
    if text is None:
        return await backtest(source, header)
    (tmp_path / "other.yaml").write_text(text)
    return await backtest(
        source, header, candidate_documents(header, [tmp_path / "other.yaml"], header.start)
    )


async def test_operator_events_are_read_with_the_alarms_that_were_open(
    live: RecordedInstance, settings: Settings, connection: Connection, tmp_path: Path
) -> None:
    path = tmp_path / "recording.ndjson.gz"
    async with window(settings) as source:
        events = await operator_events(source)
        await write_recording(source, path)
    assert {owner: [event.type for event in of_owner] for owner, of_owner in events.items()} == EXPECTED
    payload = events["plant-1"][2].payload
    assert (payload["who"], payload["via"], payload["note"]) == ("bob", "test", "on it")
    assert payload["labels"] == {}, "routes by label match it, too"
    assert await operator_events(FileRecording(path)) == events
    async with open_database_recording(settings, at(3 * DAY), at(5 * DAY)) as later:
        assert await operator_events(later) == {}, "they had all resolved"


async def test_a_snooze_from_before_the_window_ends_in_it_if_the_alarm_is_still_open(
    live: RecordedInstance, settings: Settings, tmp_path: Path
) -> None:
    async with window(settings) as source:
        same = await replay_window(source, tmp_path, RULES)
        longer = await replay_window(source, tmp_path, RULES.replace("60.0", "40.0"))
        then = await replay_window(source, tmp_path)
    assert sent(same, "notify:hot:ops") == then.recorded_notifications["notify:hot:ops", "hot"] == 1
    assert sent(longer, "notify:hot:ops") == 2, "of plant-4, and of plant-1 on the fourth day"
    assert not then.mismatches


async def test_a_snooze_that_was_over_before_the_window_does_not_end_again(
    live: RecordedInstance, settings: Settings, tmp_path: Path
) -> None:
    late = (
        "---\naction: {name: late, steps: [wait: {for: 3d}, channel: {name: ops, text: x}]}\n"
        "---\naction_rule: {name: late, on: alarm, transitions: [snooze-ended], action: late}\n"
    )
    async with window(settings) as source:
        result = await replay_window(source, tmp_path, RULES.replace("60.0", "40.0") + late)
    assert sent(result, "late") == 0, "three days after the first minute is in the window"


async def test_rules_over_events_see_that_end_and_not_the_events_before_the_window(
    live: RecordedInstance, settings: Settings, tmp_path: Path
) -> None:
    loud = "---\nevent_rule: {name: loud, event: alarm-*, fire: 'type in [%s]'}\n"
    ends = [("plant-4", at(2.3 * DAY)), ("plant-1", at(4 * DAY))]
    snoozes = [("plant-4", at(2.2 * DAY))]
    for types, seen in (('"alarm-snooze-ended"', ends), ('"alarm-snoozed", "alarm-unsnoozed"', snoozes)):
        async with window(settings) as source:
            text = RULES.replace("60.0", "40.0") + loud % types
            result = await replay_window(source, tmp_path, text)
        opened = [one for one in result.replayed_transitions if (one.rule, one.kind) == ("loud", "opened")]
        assert [(one.owner, one.at) for one in opened] == seen


async def test_steps_in_the_window_know_what_operators_did_before_it(
    live: RecordedInstance, settings: Settings, tmp_path: Path
) -> None:
    async with window(settings) as source:
        for result in (await replay_window(source, tmp_path), await replay_window(source, tmp_path, RULES)):
            assert result.recorded_notifications["resolved", "hot"] == sent(result, "resolved") == 1


async def test_operator_events_outlive_the_retention_of_the_log_with_their_rule(
    live: RecordedInstance, settings: Settings, connection: Connection
) -> None:
    await fill(connection, 8, at=timedelta(days=5))
    await mark_read_up_to(connection, 1_000)
    await virtual_now(connection, at(9 * DAY))
    newest = await one_row(
        connection, "select max(seq) as seq from tocsin.event where recorded_at < %s", (at(99),)
    )
    await connection.execute("select tocsin.raise_horizon(%s, 1000)", (newest["seq"] + 1,))
    await assert_events_are_read(settings)
    short = settings.model_copy(update={"record_retention_d": 7, "keep_events_per_rule": 1_000})
    done = await prune(connection, short)
    assert done.tables
    await assert_events_are_read(settings)


async def assert_events_are_read(settings: Settings) -> None:
    async with window(settings) as source:
        events = await operator_events(source)
    assert {owner: [event.type for event in of_owner] for owner, of_owner in events.items()} == EXPECTED
