"""Rows of two owners for tests of access: schedules, alarms, runs, events and series."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from psycopg.types.json import Jsonb

from tests.api.running_api import RunningApi
from tocsin.core.db import Connection
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent

AT = datetime(2026, 3, 7, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Recorded:
    """The ids of what an owner has."""

    owner: str
    alarm: uuid.UUID
    run: uuid.UUID
    schedule: uuid.UUID

    @property
    def texts(self) -> set[str]:
        """Texts that must not appear in an answer to a caller of another owner."""
        return {self.owner, str(self.alarm), str(self.run), str(self.schedule), f"secret-of-{self.owner}"}


async def record(api: RunningApi, connection: Connection, owner: str) -> Recorded:
    alarm = await put_alarm(connection, owner)
    run = await put_run(connection, owner, alarm)
    await put_series(connection, owner)
    event = NewEvent(
        ts=AT, origin="external", type="door-opened", payload={"note": f"secret-of-{owner}"}, owner=owner
    )
    await append_events(connection, [event])
    admin = await api.client("admin:*")
    body = {"owner": owner, "name": f"nightly-{owner}", "cron": "0 3 * * *", "payload": {"of": owner}}
    made = await admin.post("/v1/schedules", body)
    assert made.status == 201, made
    return Recorded(owner, alarm, run, uuid.UUID(made.json["schedule"]["id"]))


async def put_alarm(
    connection: Connection, owner: str, *, state: str = "open", severity: int = 3
) -> uuid.UUID:
    id = uuid.uuid4()
    await connection.execute(
        "insert into tocsin.alarm (id, event_rule, owner, instance, state, severity, since, opened_at, payload,"
        " correlation_id) values (%s, 'hot', %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            id,
            owner,
            f"i-{id}",
            state,
            severity,
            AT,
            AT,
            Jsonb({"message": f"secret-of-{owner}"}),
            uuid.uuid4(),
        ),
    )
    return id


async def put_run(
    connection: Connection, owner: str, alarm: uuid.UUID | None = None, *, state: str = "failed"
) -> uuid.UUID:
    id = uuid.uuid4()
    ended_at = None if state == "running" else AT
    document = {"action": {"name": "page", "log": {"message": "x"}}}
    await connection.execute(
        "insert into tocsin.action (id, name, action_rule, event_id, event_seq, document, owner, state, started_at,"
        " ended_at, error, correlation_id, alarm_id) values (%s, 'page', 'page-rule', %s, 1, %s, %s, %s, %s, %s, %s,"
        " %s, %s)",
        (
            id,
            uuid.uuid4(),
            Jsonb(document),
            owner,
            state,
            AT,
            ended_at,
            f"secret-of-{owner}",
            uuid.uuid4(),
            alarm,
        ),
    )
    return id


async def put_series(connection: Connection, owner: str, key: str = "room.temperature") -> None:
    await connection.execute(
        "insert into tocsin.current_value (owner, key, partition, value, ts, arrived_at, stream_seq,"
        " first_arrived_at) values (%s, %s, 0, '21.5', %s, %s, 1, %s)",
        (owner, key, AT, AT, AT),
    )
