"""Health follows its members, instant by instant, and is recorded once per change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

import psycopg
import pytest

from rules.apply import apply, preview
from rules.apply import systems as applying_systems
from rules.documents.load import load_text
from rules.engine import Arrival
from rules.health import store, systems
from rules.health.decide import HealthDecider
from rules.health.observations import Observation
from rules.health.queries import list_health
from rules.health.systems import HealthChange, Systems, observe_in_order
from tests.clock.clock_setup import at
from tests.rules.alarms.alarm_batches import arrival
from tests.rules.alarms.series import Live
from tests.rules.apply.apply_setup import ACTOR
from tests.sessions import Sessions
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

TYPE = "---\ndatapoint_type:\n  name: load\n  key: dsp.*\n  interval: 4s\n"
HOT = "---\nevent_rule:\n  name: hot\n  datapoint: dsp.*\n  above: 65\n  severity: high\n"
WARM = "---\nevent_rule:\n  name: warm\n  datapoint: dsp.*\n  above: 40\n"
SYSTEM = """---
system:
  name: cooling
  members:
    - {owner: plant-7, key: dsp.a}
    - {owner: plant-7, key: dsp.b, required: false}
    - {owner: plant-8, type: load}
"""
RULES = TYPE + HOT + WARM + SYSTEM


@pytest.fixture
async def live(connection: Connection, sessions: Sessions) -> Live:
    live = Live(connection, await sessions("clock"))
    await live.begin()
    return live


def dsp(seconds: float, value: float = 1, key: str = "dsp.a", owner: str = "plant-7") -> Arrival:
    return arrival(seconds, value, owner=owner, key=key)


async def only(connection: Connection, text: str, seconds: float = 0) -> None:
    loaded = load_text(text, anchor=at(0))
    removed = (await preview(connection, loaded, at(seconds), prune=True)).plan.removed
    await apply(connection, loaded, replace(ACTOR, now=at(seconds)), removing=removed)


async def decide(connection: Connection, chunk: int = 500) -> None:
    """Decide health once the last instant that was read is over."""
    await connection.execute(
        "update tocsin.lane_partition set watermark = watermark + interval '1 microsecond'"
    )
    await HealthDecider(Settings(), chunk).decide(connection)


async def health(connection: Connection) -> tuple[str, str | None]:
    await decide(connection)
    (row,) = await list_health(connection)
    return row["health"], row["reason"]


async def recorded(connection: Connection) -> list[tuple[float, Any, Any]]:
    await decide(connection)
    rows = await all_rows(
        connection, "select * from tocsin.datapoint_calculated where kind = 'health' order by seq"
    )
    assert {(row["owner"], row["key"]) for row in rows} <= {("cooling", "system.health")}
    return [
        ((row["ts"] - at(0)).total_seconds(), row["payload"]["health"], row["payload"]["reason"])
        for row in rows
    ]


async def test_a_system_without_data_is_unknown_and_recorded_once(connection: Connection, live: Live) -> None:
    await only(connection, RULES)
    await only(connection, RULES)
    assert await health(connection) == ("unknown", "no-data")
    assert len(await recorded(connection)) == 1


async def test_the_first_datapoint_of_a_member_makes_the_system_ok(
    connection: Connection, live: Live
) -> None:
    await only(connection, RULES)
    await live.receive([dsp(1), dsp(2)])
    assert (await recorded(connection))[1:] == [(1, "ok", None)]
    await live.receive([dsp(3, key="dsp.z", owner="plant-8")])
    await health(connection)
    (row,) = await list_health(connection)
    assert [(member["key"], member["condition"]) for member in row["not_ok"]] == [("dsp.b", "no-data")]


async def test_an_alarm_of_a_required_member_is_an_outage_and_of_an_optional_one_degrades(
    connection: Connection, live: Live
) -> None:
    await only(connection, RULES)
    await live.receive([dsp(1), dsp(1, key="dsp.b")])
    await live.receive([dsp(2, 70, key="dsp.b")])
    assert await health(connection) == ("degraded", None)
    await live.receive([dsp(3, 70)])
    assert await health(connection) == ("outage", None)
    await live.receive([dsp(4, 50)])
    assert await health(connection) == ("degraded", None)
    await live.receive([dsp(5), dsp(5, key="dsp.b")])
    assert await health(connection) == ("ok", None)
    assert [value for _, value, _ in await recorded(connection)][1:] == [
        "ok",
        "degraded",
        "outage",
        "degraded",
        "ok",
    ]


async def test_records_of_the_clock_are_observed_like_those_of_workers(
    connection: Connection, live: Live
) -> None:
    await only(connection, TYPE + HOT + "  for: 5s\n" + SYSTEM)
    await live.receive([dsp(1, 70)])
    await live.read_until(at(30))
    await live.run_clock(6)
    assert await health(connection) == ("outage", None)
    await live.receive([dsp(31, 1)])
    assert await health(connection) == ("ok", None)
    await live.read_until(at(60))
    await live.run_clock(60)
    assert await health(connection) == ("ok", None), "the rules have not processed the staleness yet"
    await live.receive_staleness(60)
    assert await health(connection) == ("unknown", "stale")
    assert (await recorded(connection))[1:] == [
        (1, "ok", None),
        (6, "outage", None),
        (31, "ok", None),
        (41, "unknown", "stale"),
    ]


async def test_a_member_without_rules_is_uncovered(connection: Connection, live: Live) -> None:
    await only(connection, "system:\n  name: cooling\n  members:\n    - {owner: plant-7, key: other}\n")
    await live.receive([dsp(1, key="other")])
    assert await health(connection) == ("unknown", "uncovered")
    rule = "---\nevent_rule:\n  name: o\n  datapoint: other\n  above: 5\n"
    await only(
        connection, "system:\n  name: cooling\n  members:\n    - {owner: plant-7, key: other}\n" + rule
    )
    assert await health(connection) == ("ok", None)


async def test_a_removed_system_gets_a_final_health_change(connection: Connection, live: Live) -> None:
    await only(connection, RULES)
    await live.receive([dsp(1, 70)])
    await live.read_until(at(8))
    await only(connection, TYPE + HOT + WARM, 9)
    assert await list_health(connection) == []
    assert (await recorded(connection))[-1] == (8, "unknown", "uncovered")
    assert await all_rows(connection, "select * from tocsin.system_member") == []


async def test_members_follow_their_document(connection: Connection, live: Live) -> None:
    await only(connection, RULES)
    await live.receive([dsp(1), dsp(1, 70, owner="plant-8", key="dsp.y")])
    assert await health(connection) == ("outage", None)
    await only(connection, TYPE + HOT + WARM + SYSTEM.replace("    - {owner: plant-8, type: load}\n", ""), 2)
    assert await health(connection) == ("ok", None)


async def test_health_waits_for_a_partition_that_lags(connection: Connection, live: Live) -> None:
    """The other partition may still bring an earlier instant."""
    await only(connection, RULES)
    await connection.execute("insert into tocsin.lane_partition (lane, partition) values ('data', 1)")
    await live.receive([dsp(5, 70)])
    assert await health(connection) == ("unknown", "no-data"), "nothing was read of the other partition"
    await live.read_until(at(4), 1)
    assert await health(connection) == ("unknown", "no-data")
    await live.read_until(at(5), 1)
    assert await health(connection) == ("outage", None)


async def test_health_waits_for_a_sustain_that_the_clock_has_still_to_fire(
    connection: Connection, live: Live
) -> None:
    await only(connection, TYPE + HOT + "  for: 5s\n" + SYSTEM)
    await live.receive([dsp(2, 70)])
    await live.receive([dsp(9, 1, owner="plant-8")])
    assert len(await recorded(connection)) == 2, "the sustain of 7 s comes before what was seen at 9 s"
    assert await all_rows(connection, "select * from tocsin.member_observation")
    await live.run_clock(9)
    assert (await recorded(connection))[1:] == [(2, "ok", None), (7, "outage", None)]
    assert not await all_rows(connection, "select * from tocsin.member_observation")


async def test_health_waits_for_a_deadline_that_no_process_has_handled(
    connection: Connection, live: Live
) -> None:
    await only(connection, RULES)
    await live.receive([dsp(1), dsp(1, owner="plant-8")])
    await live.receive([dsp(30, 70, owner="plant-8")])
    assert (await recorded(connection))[1:] == [(1, "ok", None)], "plant-7 was stale from 11 s on"
    await live.run_clock(30)
    assert (await recorded(connection))[1:] == [(1, "ok", None)], "and no rule has processed it yet"
    await live.receive_staleness(30)
    assert (await recorded(connection))[2:] == [(11, "unknown", "stale"), (30, "outage", None)]


async def test_health_waits_until_an_instant_is_over(connection: Connection, live: Live) -> None:
    """The next batch may bring more of the same instant."""
    await only(connection, RULES)
    await live.receive([dsp(1), dsp(1, key="dsp.b"), dsp(1, owner="plant-8"), dsp(5, 70)])
    await HealthDecider(Settings()).decide(connection)
    await live.receive([dsp(5, 1)])
    assert (await recorded(connection))[1:] == [(1, "ok", None)]


TENTH_SECOND = [
    (0, "unknown", "no-data"),
    (1, "ok", None),
    (5, "outage", None),
    (11, "degraded", None),
]
"""One alarm opens and another resolves at the tenth second: the health was never better in
between."""


async def until_the_twelfth_second(live: Live) -> None:
    await live.receive([dsp(1), dsp(1, key="dsp.b"), dsp(1, owner="plant-8"), dsp(5, 70)])
    await live.receive([dsp(10, 1), dsp(10, 70, owner="plant-8"), dsp(11, owner="plant-8"), dsp(12)])


@pytest.mark.parametrize("chunk", [1, 2, 500])
async def test_observations_are_processed_in_chunks_that_never_divide_an_instant(
    connection: Connection, live: Live, chunk: int
) -> None:
    await only(connection, RULES)
    await until_the_twelfth_second(live)
    await decide(connection, chunk)
    assert await recorded(connection) == TENTH_SECOND
    assert await all_rows(connection, "select * from tocsin.member_observation") == []


@pytest.mark.parametrize("chunk", [1, 2, 500])
async def test_an_apply_processes_all_observations_in_chunks_that_never_divide_an_instant(
    settings: Settings, connection: Connection, live: Live, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    """A partition is behind, so no worker could process them.

    The log stays unlocked for the clock.
    """
    monkeypatch.setattr(store, "_CHUNK", chunk)
    chunks: list[int] = []

    def observe(
        systems: Systems, observations: Iterable[Observation], not_before: datetime | None
    ) -> list[HealthChange]:
        observations = list(observations)
        chunks.append(len(observations))
        with psycopg.connect(settings.postgres, autocommit=True) as clock:
            # Until the end of the statement: a session that closes releases its locks a little later.
            free = clock.execute("select tocsin.try_share_log()").fetchone()
            assert free == (True,)
        return observe_in_order(systems, observations, not_before)

    monkeypatch.setattr(applying_systems, "observe_in_order", observe)
    await only(connection, RULES)
    await connection.execute("insert into tocsin.lane_partition (lane, partition) values ('data', 1)")
    await until_the_twelfth_second(live)
    await live.read_until(at(22), 0)
    assert len(await recorded(connection)) == 1
    chunks.clear()
    # The deadlines of plant-8 and dsp.b have passed, and the apply itself handles them.
    await only(connection, RULES + WARM.replace("warm", "warmer"), 30)
    assert await recorded(connection) == [*TENTH_SECOND, (21, "unknown", "stale")]
    assert await all_rows(connection, "select * from tocsin.member_observation") == []
    assert len(chunks) > 2 or chunk == 500


async def test_only_the_observed_members_of_a_large_system_are_read_and_the_worst_are_shown(
    connection: Connection, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (store, systems):
        monkeypatch.setattr(module, "MAX_SHOWN_MEMBERS", 2)
    members = "".join(
        f"    - {{owner: plant-{n}, key: dsp.a, required: {str(n != 1).lower()}}}\n" for n in range(1, 6)
    )
    await only(connection, TYPE + HOT + "---\nsystem:\n  name: cooling\n  members:\n" + members)
    for seconds, owner, value in [(1, 5, 1), (2, 4, 70), (3, 1, 70), (4, 4, 1), (5, 1, 1)]:
        await live.receive([dsp(seconds, value, owner=f"plant-{owner}")])
        await decide(connection)
    rows = await all_rows(connection, "select payload from tocsin.datapoint_calculated order by seq")
    changes = [
        (
            row["payload"]["health"],
            *((member["owner"][-1], member["condition"]) for member in row["payload"]["members"]),
        )
        for row in rows
    ]
    assert changes == [
        ("unknown", ("2", "no-data"), ("3", "no-data")),
        ("ok", ("2", "no-data"), ("3", "no-data")),
        ("outage", ("4", "outage"), ("2", "no-data")),
        ("degraded", ("1", "outage"), ("2", "no-data")),
        ("ok", ("2", "no-data"), ("3", "no-data")),
    ]
    read = await store.read_health(connection, lambda owner, key: (), ["plant-5"])
    assert [row.owner for row in read.members] == ["plant-5"]


async def test_the_loop_reports_that_it_is_alive(settings: Settings) -> None:
    service = Service("worker", HealthDecider(settings).run)

    async def has_run() -> bool:
        return service.problem is None

    async with running(service):
        assert service.problem == "it is starting"
        await eventually(has_run, "the loop has run once")
