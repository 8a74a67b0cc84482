"""Series with and without data, as operators see them, with deadlines and causes."""

from __future__ import annotations

from typing import Any

import pytest

from rules.alarms.series_queries import list_series, list_series_without_data
from tests.clock.clock_setup import at
from tests.rules.alarms.alarm_batches import arrival, virtual_now
from tests.rules.alarms.series import Live
from tests.rules.apply.apply_setup import put
from tests.sessions import Sessions
from tocsin.core.db import Connection
from tocsin.core.errors import InvalidInput

DOCUMENTS = """
datapoint_type:
  name: load
  key: dsp.*
  interval: 4s
  owners: [plant-7, plant-8]
---
datapoint_type:
  name: door
  key: door
  value: bool
  owners: [plant-7]
---
system:
  name: cooling
  members:
    - {owner: plant-7, key: dsp.a}
    - {owner: plant-9, key: pump.speed}
    - {owner: plant-9, type: load, required: false}
"""


@pytest.fixture
async def live(connection: Connection, sessions: Sessions) -> Live:
    live = Live(connection, await sessions("clock"))
    await live.begin()
    await put(connection, DOCUMENTS)
    await live.receive([arrival(1, 5, key="dsp.a"), arrival(2, 6, key="other")])
    return live


def shown(rows: list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in rows]


async def test_a_series_shows_its_type_and_deadline(connection: Connection, live: Live) -> None:
    rows = await list_series(connection)
    assert shown(rows, "key", "datapoint_type", "deadline", "cause") == [
        ("dsp.a", "load", at(11), None),
        ("other", None, None, None),
    ]


async def test_a_held_deadline_and_a_recorded_one_show_their_cause(
    connection: Connection, live: Live
) -> None:
    await virtual_now(connection, at(20))
    assert shown(await list_series(connection), "freshness", "cause")[0] == ("fresh", "pipeline-behind")
    await live.read_until(at(20))
    await live.run_clock(20)
    rows = await list_series(connection, stale=True)
    assert shown(rows, "key", "freshness", "cause", "stale_since", "deadline") == [
        ("dsp.a", "stale", "no-arrival", at(11), at(11))
    ]


async def test_series_of_one_type(connection: Connection, live: Live) -> None:
    assert shown(await list_series(connection, type="load"), "key") == [("dsp.a",)]
    assert await list_series(connection, type="door") == []
    with pytest.raises(
        InvalidInput, match="there is no datapoint_type 'doors': the applied ones are door, load"
    ):
        await list_series(connection, type="doors")


async def test_an_expected_series_without_data_is_unknown_and_has_no_timer(
    connection: Connection, live: Live
) -> None:
    rows = await list_series_without_data(connection)
    assert shown(rows, "owner", "key", "datapoint_type", "freshness", "cause", "by") == [
        ("plant-7", "door", "door", "unknown", "no-data", "datapoint_type door"),
        ("plant-8", "dsp.*", "load", "unknown", "no-data", "datapoint_type load"),
        ("plant-9", "dsp.*", "load", "unknown", "no-data", "system cooling"),
        ("plant-9", "pump.speed", None, "unknown", "no-data", "system cooling"),
    ]
    row = await (await connection.execute("select count(*) from tocsin.timer")).fetchone()
    assert row == (1,)
    assert shown(await list_series_without_data(connection, owner="plant-8"), "key") == [("dsp.*",)]
    assert shown(await list_series_without_data(connection, type="door"), "owner") == [("plant-7",)]
    assert shown(await list_series_without_data(connection, key="pump.*"), "owner") == [("plant-9",)]
    assert len(await list_series_without_data(connection, limit=2)) == 2


async def test_the_first_datapoint_ends_the_unknown_freshness(connection: Connection, live: Live) -> None:
    await live.receive(
        [arrival(3, 1, owner="plant-8", key="dsp.z"), arrival(4, 1, owner="plant-9", key="pump.speed")]
    )
    assert shown(await list_series_without_data(connection), "owner", "key") == [
        ("plant-7", "door"),
        ("plant-9", "dsp.*"),
    ]
