"""A batch of a worker without a lane: inputs are evaluated and written in one transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any

from rules.alarms.batch_writes import AlarmBatch, read_states, state_key
from rules.documents.load import load_text
from rules.engine import Arrival, CompiledRules, Rule
from rules.lanes.batch import PhasedPlan
from schemas.documents import EventRuleDocument
from tests.clock.clock_setup import at
from tests.sql import all_rows
from tocsin.core.db import Connection
from tocsin.core.errors import Conflict

KEY = "dsp.temperature"
HOT = """
event_rule:
  name: dsp-hot
  datapoint: dsp.temperature
  above: 65
  for: 10s
  severity: high
"""


def compiled(text: str = HOT) -> CompiledRules:
    models = [document.model for document in load_text(text).documents]
    return CompiledRules(Rule(model) for model in models if isinstance(model, EventRuleDocument))


def arrival(seconds: float, value: float, owner: str = "plant-7", key: str = KEY) -> Arrival:
    return Arrival(at(seconds), int(seconds * 1000), owner, key, value, at(seconds), {})


async def write_batch(
    connection: Connection,
    rules: CompiledRules,
    arrivals: Sequence[Arrival],
    *,
    before_write: Callable[[], Awaitable[None]] | None = None,
) -> int:
    """Evaluate and write arrivals; returns the number of attempts.

    The watermark is then the last arrival.
    """
    for attempt in range(1, 10):
        subjects = [state_key(rule, arrival) for arrival in arrivals for rule in rules.for_key(arrival.key)]
        batch = AlarmBatch("data", 0, await read_states(connection, subjects))
        for arrival in arrivals:
            for rule in rules.for_key(arrival.key):
                batch.apply_input(rule, arrival)
        if before_write is not None and attempt == 1:
            await before_write()
        try:
            async with connection.transaction():
                await connection.execute(
                    "update tocsin.lane_partition set watermark = greatest(watermark, %s)",
                    (arrivals[-1].at,),
                )
                await PhasedPlan([batch]).write(connection)
        except Conflict:
            continue
        return attempt
    raise AssertionError("in conflict with another transaction every time")


async def event_times(connection: Connection) -> list[tuple[str, float]]:
    """The type of every event, with its seconds since the start."""
    rows = await all_rows(connection, "select type, ts from tocsin.event order by seq")
    return [(row["type"], (row["ts"] - at(0)).total_seconds()) for row in rows]


async def virtual_now(connection: Connection, now: datetime) -> None:
    await connection.execute("select set_config('tocsin.now', %s, false)", (now.isoformat(),))


async def alarms(connection: Connection) -> list[dict[str, Any]]:
    return await all_rows(connection, "select * from tocsin.alarm order by since")
