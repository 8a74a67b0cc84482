"""Alarms that end or change again and again are listed by the doctor."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from tests.sql import all_rows
from tocsin.core.db import Connection
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.doctor.flapping_check import FlappingAlarm, check_flapping, flapping_findings


async def _now(connection: Connection) -> datetime:
    (row,) = await all_rows(connection, "select tocsin.instant() as now")
    now = row["now"]
    assert isinstance(now, datetime)
    return now


async def _alarm(connection: Connection, rule: str, instance: str, state: str) -> UUID:
    alarm_id = uuid4()
    await connection.execute(
        "insert into tocsin.alarm"
        " (id, event_rule, owner, instance, state, severity, since, resolved_at, correlation_id)"
        " values (%(id)s, %(rule)s, 'p1', %(instance)s, %(state)s, 4, tocsin.instant(),"
        " case when %(state)s = 'resolved' then tocsin.instant() end, %(id)s)",
        {"id": alarm_id, "rule": rule, "instance": instance, "state": state},
    )
    return alarm_id


async def _change(connection: Connection, alarm_id: UUID) -> None:
    at = datetime(2026, 3, 2, tzinfo=UTC)
    event = NewEvent(at, "derived", "alarm-changed", {}, owner="p1", rule="full", alarm_id=alarm_id)
    await append_events(connection, [event])


async def test_an_alarm_that_ends_again_and_again_is_listed_with_the_remedy(connection: Connection) -> None:
    for _ in range(5):
        await _alarm(connection, "hot", "t", "resolved")
    await _alarm(connection, "hot", "t", "open")
    assert await check_flapping(connection, await _now(connection)) == []
    await _alarm(connection, "hot", "t", "resolved")
    (finding,) = await check_flapping(connection, await _now(connection))
    assert finding.state == "info"
    assert finding.text == "1 ended or changed at least 6 times within an hour: hot (p1 t) 6 times"
    assert "dimensions" in finding.remedy
    assert await check_flapping(connection, await _now(connection) + timedelta(hours=2)) == []


async def test_an_alarm_whose_level_alternates_is_listed(connection: Connection) -> None:
    alarm_id = await _alarm(connection, "full", "disk", "open")
    for _ in range(5):
        await _change(connection, alarm_id)
    assert await check_flapping(connection, await _now(connection)) == []
    await _change(connection, alarm_id)
    (finding,) = await check_flapping(connection, await _now(connection))
    assert finding.text.endswith("full (p1 disk) 6 times")
    assert await check_flapping(connection, await _now(connection) + timedelta(hours=2)) == []


def test_only_the_most_frequent_alarms_are_named() -> None:
    alarms = [FlappingAlarm("hot", "", "", 9 - number) for number in range(4)]
    (finding,) = flapping_findings(alarms)
    assert finding.text.startswith("4 ended or changed")
    assert finding.text.endswith("hot 9 times, hot 8 times, hot 7 times, ...")
