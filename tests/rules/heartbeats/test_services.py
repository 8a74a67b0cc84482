"""Heartbeats of real services: check-ins through NATS, deadlines in quiet partitions, one event each."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from cdc.publisher import Publisher
from clock.service import Clock
from rules.apply import apply
from rules.documents.load import load_text
from rules.worker import Worker
from tests.rules.replay.backtest.recorded_instance import replayed
from tests.sql import all_rows
from tests.wait import eventually
from timers.working_set import database_now
from tocsin.client.producer import Producer
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

RULES = """
heartbeat: {name: backup, every: 1s, grace: 500ms, severity: high}
---
heartbeat: {name: report, cron: "0 2 * * *", owners: [db-1, db-2]}
---
action_rule: {name: note, on: event, when: 'type == "heartbeat-fail"', action: note}
---
action: {name: note, log: {message: "{{ payload.heartbeat }} failed: {{ payload.log }}"}}
"""


@pytest.fixture
async def services(settings: Settings, connection: Connection) -> AsyncIterator[None]:
    actor = Actor("tester", "test", await database_now(connection))
    await apply(connection, load_text(RULES), actor)
    async with running(
        Service("clock", Clock(settings).run),
        Service("cdc", Publisher(settings).run),
        Service("worker", Worker(settings).run),
    ):
        yield


async def states(connection: Connection, rule: str) -> list[tuple[str, str, str]]:
    rows = await all_rows(
        connection,
        "select owner, state, payload -> 'heartbeat' ->> 'cause' as cause from tocsin.alarm"
        f" where event_rule = '{rule}' order by since, owner",
    )
    return [(row["owner"], row["state"], row["cause"]) for row in rows]


async def test_a_job_that_never_checks_in_is_late_and_a_success_resolves(
    settings: Settings, connection: Connection, services: None
) -> None:
    begun = await database_now(connection)

    async def is_late() -> bool:
        return await states(connection, "heartbeat:backup") == [("backup", "open", "late")]

    async def is_resolved() -> bool:
        return ("backup", "resolved", "late") in await states(connection, "heartbeat:backup")

    await eventually(is_late, "the alarm opens although nothing arrives in its partition", within=60)
    async with Producer(settings) as producer:
        await producer.check_in("backup", exit_code=0, duration_s=1.5, log="done")
    await eventually(is_resolved, "the success resolves it", within=60)
    until = await database_now(connection)
    _, result = await replayed(settings, begun, until)
    assert not result.mismatches, "\n".join(map(str, result.mismatches))


async def test_a_fail_opens_at_once_and_its_log_reaches_the_actions(
    settings: Settings, connection: Connection, services: None
) -> None:
    async with Producer(settings) as producer:
        await producer.check_in("report", "start", owner="db-2", run="r1")
        await producer.check_in("report", "fail", owner="db-2", run="r1", exit_code=3, log="disk full\n")

    async def is_open() -> bool:
        return await states(connection, "heartbeat:report") == [("db-2", "open", "failed")]

    async def is_noted() -> bool:
        rows = await all_rows(
            connection,
            "select state from tocsin.action where name = 'note'",
        )
        return [row["state"] for row in rows] == ["completed"]

    await eventually(is_open, "the alarm of the owner that failed is open", within=60)
    await eventually(is_noted, "the action ran for the event of the check-in", within=60)
    events = await all_rows(
        connection,
        "select type, owner, payload from tocsin.event where starts_with(type, 'heartbeat-') order by seq",
    )
    assert [(event["type"], event["owner"]) for event in events] == [
        ("heartbeat-start", "db-2"),
        ("heartbeat-fail", "db-2"),
    ]
    assert events[1]["payload"] == {
        "heartbeat": "report",
        "status": "fail",
        "run": "r1",
        "exit_code": 3,
        "log": "disk full",
    }
