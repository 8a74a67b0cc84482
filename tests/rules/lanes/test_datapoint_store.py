"""Every datapoint is stored; the current value is the newest by `ts`, its arrival the latest."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.engine.inputs import Arrival, Value
from rules.lanes.datapoint_store import DatapointWrites, PlacedArrival, prepare_staging, staged_lines
from tests.rules.apply.apply_setup import rows
from tests.sql import one_row
from tocsin.core.db import Connection

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
async def days(connection: Connection) -> None:
    await connection.execute("select tocsin.extend_datapoints('2026-03-01', '2026-03-03')")


def second(number: float) -> datetime:
    return T0 + timedelta(seconds=number)


def point(
    seq: int,
    value: Value,
    ts: datetime | None = None,
    owner: str = "plant",
    key: str = "temperature",
    **labels: str,
) -> PlacedArrival:
    at = second(seq)
    return PlacedArrival(0, Arrival(at, seq, owner, key, value, ts or at, labels))


async def store(connection: Connection, *datapoints: PlacedArrival, partition: int = 3) -> None:
    await prepare_staging(connection)
    writes = DatapointWrites(partition, datapoints)
    async with connection.transaction():
        await writes.stage(connection)
        await writes.write_timers(connection)
        await writes.write_entities(connection)


async def current(connection: Connection) -> dict[str, Any]:
    return await one_row(connection, "select * from tocsin.current_value")


async def test_a_datapoint_is_stored_with_its_position_and_its_times(connection: Connection) -> None:
    await store(connection, point(1, 66.5, second(-9), zone="north"))
    (row,) = await rows(connection, "datapoint")
    assert (row["owner"], row["key"], row["value"], row["labels"]) == (
        *("plant", "temperature", 66.5),
        {"zone": "north"},
    )
    assert (row["arrived_at"], row["stream_seq"], row["position"]) == (second(1), 1, 0)
    assert row["ts"] == second(-9)
    value = await current(connection)
    assert (value["value"], value["partition"], value["labels"]) == (66.5, 3, {"zone": "north"})
    assert (value["ts"], value["arrived_at"], value["stream_seq"]) == (second(-9), second(1), 1)
    assert (value["first_arrived_at"], value["freshness"], value["version"]) == (second(1), "fresh", 1)


async def test_the_newest_ts_wins_the_value_and_the_latest_arrival_is_kept(connection: Connection) -> None:
    await store(connection, point(1, 1, second(10)))
    await store(connection, point(2, 2, second(5)), point(3, 3, second(7)))
    value = await current(connection)
    assert (value["value"], value["ts"]) == (1, second(10))
    assert (value["arrived_at"], value["stream_seq"], value["version"]) == (second(3), 3, 2)
    assert value["first_arrived_at"] == second(1)
    await store(connection, point(4, 4, second(10)), point(5, 5, second(9)))
    value = await current(connection)
    assert (value["value"], value["ts"], value["arrived_at"]) == (4, second(10), second(5))
    assert len(await rows(connection, "datapoint")) == 5, "late and out of order ones are stored"


async def test_columns_of_other_components_are_left_alone(connection: Connection) -> None:
    await store(connection, point(1, 1))
    await connection.execute("update tocsin.current_value set freshness = 'stale', stale_since = %s", (T0,))
    await store(connection, point(2, 2))
    value = await current(connection)
    assert (value["freshness"], value["stale_since"]) == ("stale", T0)


async def test_an_empty_batch_writes_nothing(connection: Connection) -> None:
    await store(connection)
    assert await rows(connection, "datapoint") == []


async def test_a_batch_that_was_rolled_back_can_be_staged_again(connection: Connection) -> None:
    await prepare_staging(connection)
    writes = DatapointWrites(0, [point(1, 1)])
    async with connection.transaction(force_rollback=True):
        await writes.stage(connection)
        await writes.write_entities(connection)
    await store(connection, point(1, 1))
    assert len(await rows(connection, "datapoint")) == 1


NASTY = ["\\", "\\N", "a\tb", "a\nb", "a\rb", '"', "'", "é", "𝄞", "\\.", "\x01", "{}", "null", "true", "1"]


async def test_texts_are_stored_exactly(connection: Connection) -> None:
    batch = [
        point(number, text, owner=text, key=f"k.{number}", label=text) for number, text in enumerate(NASTY)
    ]
    await store(connection, *batch)
    stored = await rows(connection, "datapoint", "stream_seq")
    assert [row["value"] for row in stored] == NASTY
    assert [row["owner"] for row in stored] == NASTY
    assert [row["labels"] for row in stored] == [{"label": text} for text in NASTY]


NUMBERS: Sequence[Value] = [
    *(
        0,
        -1,
        2**63 - 1,
        -(2**63),
        0.0,
        -0.0,
        1.0,
        1.5,
        0.1,
        1e15,
        1e16,
        1e22,
        1e300,
        5e-324,
        1.7976931348623157e308,
    ),
    *(True, False),
]


async def test_numbers_are_stored_exactly(connection: Connection) -> None:
    await store(connection, *(point(number, value) for number, value in enumerate(NUMBERS)))
    values = [row["value"] for row in await rows(connection, "datapoint", "stream_seq")]
    assert values == list(NUMBERS)
    assert [type(value) for value in values] == [type(value) for value in NUMBERS]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["a", "b"]), st.sampled_from(["x", "y"])), max_size=12
    )
)
def test_one_row_of_each_series_has_its_newest_value(drawn: list[tuple[int, str, str]]) -> None:
    batch = [point(seq, seq, second(ts), owner=owner, key=key) for seq, (ts, owner, key) in enumerate(drawn)]
    lines = [line.split("\t") for line in staged_lines(batch).decode().splitlines()]
    assert len(lines) == len(batch)
    marked = {(line[3], line[4]): line for line in lines if line[10] != "\\N"}
    assert set(marked) == {(placed.arrival.owner, placed.arrival.key) for placed in batch}
    for series, line in marked.items():
        mine = [placed.arrival for placed in batch if (placed.arrival.owner, placed.arrival.key) == series]
        newest = max(mine, key=lambda arrival: (arrival.ts, arrival.seq))
        assert line[1] == str(newest.seq)
        assert (line[8], line[9]) == (mine[0].at.isoformat(), mine[-1].at.isoformat())
        assert line[10] == str(mine[-1].seq)


async def test_partitions_are_created_once_for_days_of_arrival_in_utc(connection: Connection) -> None:
    await connection.execute("set timezone to 'Pacific/Auckland'")
    extend = "select tocsin.extend_datapoints('2026-03-02', '2026-03-05') as n"
    assert (await one_row(connection, extend))["n"] == 2
    assert (await one_row(connection, extend))["n"] == 0
    bounds = await one_row(
        connection,
        "select pg_get_expr(relpartbound, oid) as b from pg_class where relname = 'datapoint_20260305'",
    )
    assert "'2026-03-05 13:00:00+13'" in bounds["b"], "midnight in UTC"
