"""The clock records in SQL what a worker records in Python when a series becomes stale."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rules.alarms.staleness import stale_datapoint
from rules.engine import Arrival, Value, WentStale
from tests.clock.clock_setup import at
from tests.rules.alarms.series import Live
from tests.rules.apply.apply_setup import put
from tests.sessions import Sessions
from tests.sql import one_row
from tocsin.core.db import Connection

TYPE = "datapoint_type: {name: load, key: dsp.*, interval: 4s, tolerance: 2.5}"
ARRIVED_AT = at(1) + timedelta(microseconds=70)


@pytest.fixture
async def live(connection: Connection, sessions: Sessions) -> Live:
    live = Live(connection, await sessions("clock"))
    await live.begin()
    return live


@pytest.mark.parametrize("value", [71.25, 3, True, "läuft"])
@pytest.mark.parametrize("by_clock", [True, False], ids=["clock", "worker"])
async def test_the_calculated_datapoint_is_the_pure_one(
    connection: Connection, live: Live, value: Value, by_clock: bool
) -> None:
    await put(connection, TYPE)
    labels, produced_at = {"zone": "hall 3"}, at(0) - timedelta(microseconds=1)
    await live.receive([Arrival(ARRIVED_AT, 1, "plant-7", "dsp.a", value, produced_at, labels)])
    if by_clock:
        await live.read_until(at(12))
        await live.run_clock(12)
    else:
        await live.receive([Arrival(at(20), 2, "plant-7", "dsp.b", 1, at(20), {})])
    deadline = ARRIVED_AT + timedelta(seconds=10)
    pure = stale_datapoint(WentStale(deadline, "plant-7", "dsp.a", ARRIVED_AT, value, produced_at, labels))
    row = await one_row(
        connection, "select id, owner, key, ts, kind, payload from tocsin.datapoint_calculated"
    )
    assert row == {name: getattr(pure, name) for name in row}
