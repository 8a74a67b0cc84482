"""A worker's half of a batch, by hand: inputs are write_batch and written in one transaction, as a lane would."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any

from rules.alarms.batch_writes import AlarmBatch, read_states
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
    documents = [one.model for one in load_text(text).documents]
    rules = [Rule(one) for one in documents if isinstance(one, EventRuleDocument)]
    return CompiledRules(rules)


def arrival(seconds: float, value: float, owner: str = "plant-7", key: str = KEY) -> Arrival:
    return Arrival(at(seconds), int(seconds * 1000), owner, key, value, at(seconds), {})


async def write_batch(
    connection: Connection,
    rules: CompiledRules,
    arrivals: Sequence[Arrival],
    *,
    before_write: Callable[[], Awaitable[None]] | None = None,
) -> int:
    """How often it took; the partition is complete up to the last arrival afterwards."""
    for attempt in range(1, 10):
        subjects = [(rule.name, one.owner) for one in arrivals for rule in rules.for_key(one.key)]
        batch = AlarmBatch("data", 0, await read_states(connection, subjects))
        for one in arrivals:
            for rule in rules.for_key(one.key):
                batch.apply_input(rule, one.owner, one)
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
    raise AssertionError("overtaken for ever")


async def event_times(connection: Connection) -> list[tuple[str, float]]:
    rows = await all_rows(connection, "select type, ts from tocsin.event order by seq")
    return [(row["type"], (row["ts"] - at(0)).total_seconds()) for row in rows]


async def virtual_now(connection: Connection, now: datetime) -> None:
    await connection.execute("select set_config('tocsin.now', %s, false)", (now.isoformat(),))


async def alarms(connection: Connection) -> list[dict[str, Any]]:
    return await all_rows(connection, "select * from tocsin.alarm order by since")
