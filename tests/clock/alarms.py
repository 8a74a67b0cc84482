"""Alarms, the states of their rules and their sustains, stored as a worker stores them."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from tests.clock.clock_setup import at
from tests.sql import all_rows
from timers.working_set import arm
from tocsin.core.db import Connection

ALARM = uuid.UUID("aaaaaaaa-0000-4000-8000-000000000001")
CAUSE = uuid.UUID("cccccccc-0000-4000-8000-000000000001")


async def read_until(connection: Connection, until: datetime | None, partition: int = 0) -> None:
    await connection.execute(
        "insert into tocsin.lane_partition (lane, partition, watermark) values ('data', %s, %s)"
        " on conflict (lane, partition) do update set watermark = excluded.watermark",
        (partition, until),
    )


async def hold_alarm(
    connection: Connection,
    state: str = "pending",
    *,
    alarm: uuid.UUID = ALARM,
    owner: str = "plant-7",
    partition: int = 0,
) -> None:
    phase = {"pending": "pending", "open": "open", "clearing": "clearing"}[state]
    stored = {
        "phase": phase,
        "alarm": {"id": str(alarm)},
        "due_at": at(10).isoformat(),
        "firing_series": {"dsp.temperature": {"clear_due_at": "2026-01-01T00:00:00+00:00"}},
        "tracks": {"kept": 1},
    }
    await connection.execute(
        "insert into tocsin.rule_state (event_rule, owner, lane, partition, phase, alarm_id, state)"
        " values ('dsp-hot', %s, 'data', %s, %s, %s, %s)",
        (owner, partition, phase, alarm, Jsonb(stored)),
    )
    await connection.execute(
        "insert into tocsin.alarm (id, event_rule, owner, state, severity, since, opened_at, correlation_id)"
        " values (%s, 'dsp-hot', %s, %s, 4, %s, %s, %s)",
        (alarm, owner, "pending" if state == "pending" else "open", at(0), None, CAUSE),
    )


async def arm_sustain(connection: Connection, key: str, when: datetime, payload: dict[str, Any]) -> None:
    await arm(connection, "for-sustain", str(ALARM), key, when, payload)


async def alarm_row(connection: Connection) -> dict[str, Any]:
    (row,) = await all_rows(connection, "select * from tocsin.alarm")
    return row


async def state_row(connection: Connection) -> dict[str, Any]:
    (row,) = await all_rows(connection, "select * from tocsin.rule_state")
    return row


async def timers(connection: Connection) -> list[dict[str, Any]]:
    return await all_rows(connection, "select * from tocsin.timer order by kind, ref, key")
