"""From JetStream to the tables: each datapoint once, invalid ones as dead letters, rules never mixed."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from cdc.publisher import Publisher
from clock.service import Clock
from rules.alarms.over_series import SeriesAlarms
from rules.health.decide import HealthDecider
from rules.lanes.batch import Writes
from rules.lanes.data_lane import DataBatch
from rules.lanes.dead_letters import read_dead_letters
from tests.cdc.published_records import smaller, with_long_timeouts
from tests.rules.apply.apply_setup import put, rows
from tests.rules.lanes.lane_setup import has_stream, jetstream, lane_worker, make_stream, wait_for_rows
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

TYPES = "---\ndatapoint_type:\n  name: temperature\n  key: temperature\n  value: number\n"


async def publish(settings: Settings, subject: str, body: Any) -> None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with jetstream(settings) as js:
        await js.publish(f"{settings.subjects}.datapoint.{subject}", raw)


async def letters(settings: Settings) -> list[dict[str, Any]]:
    """Oldest first."""
    async with jetstream(settings) as js:
        return (await read_dead_letters(js, settings, None, 100))[::-1]


async def test_one_and_many_datapoints_arrive_in_both_tables(
    settings: Settings, connection: Connection
) -> None:
    await make_stream(settings)
    async with running(lane_worker("one", settings)):
        await publish(settings, "plant%207.dsp.temperature", {"value": 66.5, "labels": {"zone": "n"}})
        batch = [{"key": f"k.{number}", "value": number} for number in range(100)]
        await publish(settings, "plant%207._", {"batch": batch})
        await wait_for_rows(connection, "tocsin.datapoint", 101)
    stored = await rows(connection, "datapoint", "stream_seq, position")
    assert [row["key"] for row in stored] == ["dsp.temperature", *(f"k.{number}" for number in range(100))]
    assert {row["owner"] for row in stored} == {"plant 7"}
    assert [row["position"] for row in stored] == [0, *range(100)]
    values = await rows(connection, "current_value", "key")
    assert {row["key"]: row["value"] for row in values} == {row["key"]: row["value"] for row in stored}
    lanes = await all_rows(connection, "select * from tocsin.lane_partition where last_seq > 0")
    assert {row["partition"] for row in values} == {row["partition"] for row in lanes}
    assert lanes[0]["watermark"] >= stored[-1]["arrived_at"]


async def test_invalid_messages_become_dead_letters_with_the_reason_and_block_nothing(
    settings: Settings, connection: Connection
) -> None:
    await make_stream(settings)
    bad: list[tuple[str, Any, str]] = [
        ("plant.a", b"\xff", "the body is not JSON"),
        ("plant.a", {"value": None}, "the value is null"),
        (
            "plant.a",
            {"batch": [{"value": 1}, {"value": "\0"}]},
            "1 of 2 datapoints were rejected: [1] the value",
        ),
        ("%41.a", {"value": 1}, "the owner '%41' is not encoded as tocsin does it"),
        ("plant.a", {"value": 1, "ts": "2000-01-01T00:00:00Z"}, "outside of the retention"),
        ("plant.a", {"value": 1, "ts": "2200-01-01T00:00:00Z"}, "more than 5m after its arrival"),
        ("plant.a b".replace(" ", "%20"), {"value": 1}, "'a b' is not a key"),
    ]
    async with running(lane_worker("one", settings)):
        for subject, body, _ in bad:
            await publish(settings, subject, body)
        await publish(settings, "plant.good", {"value": 1})
        await wait_for_rows(connection, "tocsin.datapoint", 2)

        async def are_rejected() -> bool:
            return len(await letters(settings)) >= len(bad)

        await eventually(are_rejected, "all letters are there")
    dead_letters = await letters(settings)
    for subject, body, reason in bad:
        mine = [letter for letter in dead_letters if reason in letter["reason"]]
        assert len(mine) == 1, reason
        assert mine[0]["subject"] == f"{settings.subjects}.datapoint.{subject}"
        assert (mine[0]["kind"], mine[0]["size"] > 0) == ("datapoint", True)
        if not isinstance(body, bytes):
            assert json.loads(mine[0]["body"]) == body
    assert {(row["key"], row["value"]) for row in await rows(connection, "datapoint")} == {
        ("a", 1),
        ("good", 1),
    }


async def test_a_dead_letter_has_the_beginning_of_a_large_body(
    settings: Settings, connection: Connection
) -> None:
    await make_stream(settings)
    async with running(lane_worker("one", settings)):
        await publish(settings, "plant.a", b" " * 1_048_000)
        await publish(settings, "plant.a", {"value": 1})
        await wait_for_rows(connection, "tocsin.datapoint", 1)
    (letter,) = await letters(settings)
    assert "the body is not JSON" in letter["reason"]
    assert (letter["size"], len(letter["body"])) == (1_048_000, 65_536)


async def test_a_value_of_another_kind_than_its_type_becomes_a_dead_letter(
    settings: Settings, connection: Connection
) -> None:
    await make_stream(settings)
    await put(connection, TYPES)
    async with running(lane_worker("one", settings)):
        for value in ("hot", True, 5, 5.5):
            await publish(settings, "plant.temperature", {"value": value})
        await publish(settings, "plant.other", {"value": "hot"})
        await wait_for_rows(connection, "tocsin.datapoint", 3)
        await put(connection, TYPES.replace("number", "string"))
        await publish(settings, "plant.temperature", {"value": "hot"})
        await publish(settings, "plant.temperature", {"value": 7})
        await publish(settings, "plant.temperature", {"value": "cold"})
        await wait_for_rows(connection, "tocsin.datapoint", 5)
    assert [letter["reason"] for letter in await letters(settings)] == [
        "the value of 'temperature' is a string: the datapoint_type 'temperature' takes a number",
        "the value of 'temperature' is a bool: the datapoint_type 'temperature' takes a number",
        "the value of 'temperature' is a number: the datapoint_type 'temperature' takes a string",
    ]


class ApplyDuringBatch:
    """Applies rules between the plan of the first batch and its first lock."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.planned: list[int] = []

    async def plan(self, connection: Connection, batch: DataBatch) -> Writes:
        if not self.planned:
            await put(self._connection, TYPES)
        self.planned.append(batch.rules_seq)
        return Writes()


async def test_a_batch_is_planned_again_if_rules_are_applied_before_its_first_lock(
    settings: Settings, connection: Connection
) -> None:
    await make_stream(settings)
    meanwhile = ApplyDuringBatch(connection)
    async with running(lane_worker("one", settings, meanwhile)):
        await publish(settings, "plant.temperature", {"value": "hot"})
        await publish(settings, "plant.temperature", {"value": 1})
        await wait_for_rows(connection, "tocsin.datapoint", 1)
    first, second, *_ = meanwhile.planned
    assert (first, second > first) == (0, True)
    assert [row["value"] for row in await rows(connection, "datapoint")] == [1]
    assert len(await letters(settings)) == 1


async def test_a_deleted_stream_is_created_again_and_its_sequences_continue(
    settings: Settings, connection: Connection
) -> None:
    await make_stream(settings)
    async with running(lane_worker("one", settings)):
        await publish(settings, "plant.a", {"value": 1})
        await wait_for_rows(connection, "tocsin.datapoint", 1)
        async with jetstream(settings) as js:
            await js.delete_stream(settings.data_stream)

        async def is_back() -> bool:
            return await has_stream(settings, settings.data_stream)

        await eventually(is_back, "the worker makes it again", within=30)
        await publish(settings, "plant.a", {"value": 2})
        await wait_for_rows(connection, "tocsin.datapoint", 2)
    stored = await rows(connection, "datapoint", "arrived_at")
    assert [row["value"] for row in stored] == [1, 2]
    assert stored[1]["stream_seq"] > stored[0]["stream_seq"]


async def test_partitions_of_the_table_are_created_ahead(settings: Settings, connection: Connection) -> None:
    await make_stream(settings)
    async with running(lane_worker("one", with_long_timeouts(settings))):
        await publish(settings, "plant.a", {"value": 1})
        await wait_for_rows(connection, "tocsin.datapoint", 1)
    (row,) = await rows(connection, "datapoint")
    names = await all_rows(
        connection,
        "select inhrelid::regclass::text as n from pg_inherits where inhparent = 'tocsin.datapoint'::regclass",
    )
    tomorrow = row["arrived_at"] + timedelta(days=1)
    assert f"datapoint_{tomorrow:%Y%m%d}" in {name["n"].rpartition(".")[2] for name in names}


@pytest.mark.parametrize(("retention", "stored"), [(30.0, 0), (36_500.0, 1)])
async def test_the_bounds_of_ts_are_settings(
    settings: Settings, connection: Connection, retention: float, stored: int
) -> None:
    await make_stream(settings)
    chosen = smaller(settings, datapoint_retention_d=retention)
    async with running(lane_worker("one", chosen)):
        await publish(settings, "plant.a", {"value": 1, "ts": "2001-01-01T00:00:00Z"})
        await publish(settings, "plant.b", {"value": 2})
        await wait_for_rows(connection, "tocsin.datapoint", stored + 1)
    assert len(await rows(connection, "datapoint")) == stored + 1


async def test_the_health_of_a_system_arrives_as_a_datapoint_and_rules_evaluate_it(
    settings: Settings, connection: Connection
) -> None:
    system = "---\nsystem:\n  name: cooling\n  members:\n    - {owner: plant-7, key: temperature}\n"
    ill = (
        "---\nevent_rule:\n  name: ill\n  datapoint: system.health\n  fire: 'value == \"outage\"'\n"
        "---\nevent_rule:\n  name: hot\n  datapoint: temperature\n  above: 65\n  severity: high\n"
    )
    # A type that covers all keys does not cover health, which is never stale.
    everything = "---\ndatapoint_type:\n  name: all\n  key: '**'\n  interval: 1h\n"
    await put(connection, TYPES + everything + system + ill)

    async def are_all(state: str) -> bool:
        alarms = await rows(connection, "alarm", "event_rule")
        return [(row["event_rule"], row["state"]) for row in alarms] == [("hot", state), ("ill", state)]

    await make_stream(settings)
    async with running(
        Service("cdc", Publisher(settings).run),
        Service("health", HealthDecider(settings).run),
        lane_worker("one", settings, SeriesAlarms()),
    ):
        await publish(settings, "plant-7.temperature", {"value": 70})
        await eventually(lambda: are_all("open"), "health opens an alarm", within=60)
        await publish(settings, "plant-7.temperature", {"value": 1})
        await eventually(lambda: are_all("resolved"), "and resolves it", within=60)
    (health,) = await all_rows(connection, "select * from tocsin.current_value where key = 'system.health'")
    assert (health["owner"], health["value"], health["labels"]) == ("cooling", "ok", {})
    timers = await all_rows(connection, "select key from tocsin.timer where kind = 'watchdog'")
    assert timers == []
    stored = await all_rows(
        connection, "select value from tocsin.datapoint where owner = 'cooling' order by arrived_at"
    )
    assert [row["value"] for row in stored] == ["unknown", "outage", "ok"]


CORES = """
datapoint_type: {name: cores, key: cpu.temp, dimensions: [core], interval: 200ms, on_stale: alarm}
---
event_rule: {name: hot, datapoint: cpu.*, above: 80}
---
system: {name: host, members: [{owner: web, key: cpu.temp}]}
"""


async def test_dimensions_make_series_whose_alarms_open_and_go_stale_on_their_own(
    settings: Settings, connection: Connection
) -> None:
    await make_stream(settings)
    await put(connection, CORES)
    async with running(
        Service("cdc", Publisher(settings).run),
        Service("clock", Clock(settings).run),
        lane_worker("one", settings, SeriesAlarms()),
    ):
        for core, value in (("0", 90), ('a."b', 40)):
            await publish(settings, "web.cpu.temp", {"value": value, "labels": {"core": core, "rack": "7"}})
        await eventually(lambda: has_alarms(connection, "stale:cores", 2), "both are stale", within=60)
    series = await all_rows(connection, "select * from tocsin.current_value where owner = 'web' order by key")
    keys = ['cpu.temp{core="0"}', r'cpu.temp{core="a.\"b"}']
    assert [row["key"] for row in series] == keys
    assert [row["labels"] for row in series] == [{"core": "0", "rack": "7"}, {"core": 'a."b', "rack": "7"}]
    alarms = await rows(connection, "alarm", "event_rule, instance")
    assert [(row["event_rule"], row["instance"], row["state"]) for row in alarms] == [
        ("hot", keys[0], "open"),
        ("stale:cores", keys[0], "open"),
        ("stale:cores", keys[1], "open"),
    ]
    assert alarms[0]["payload"]["key"] == "cpu.temp"


async def has_alarms(connection: Connection, rule: str, count: int) -> bool:
    alarms = await all_rows(connection, "select id from tocsin.alarm where event_rule = %s", [rule])
    return len(alarms) == count
