"""While producers cannot publish, no series becomes stale: deadlines do not count the time of an outage.

Real services on a NATS server of their own, which is frozen, restricted, or one of three nodes.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path

import nats
import pytest
from nats.errors import Error as NatsError

from cdc.publisher import Publisher
from clock.service import Clock
from rules.alarms.series_queries import list_series
from rules.alarms.staleness import extended_deadline
from rules.lanes.arrival_gap import ArrivalGap
from rules.lanes.data_stream import canary_subject, partition_of
from rules.worker import Worker
from schemas.wire.subjects import datapoint_subject
from tests.nats_cluster import Node, nats_cluster
from tests.rules.apply.apply_setup import put
from tests.rules.replay.backtest.recorded_instance import replayed
from tests.sql import all_rows, one_row
from tests.wait import eventually
from timers.working_set import database_now
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings
from tocsin.embedded import Nats, embedded_nats

WITHIN_S = 240.0
STALE_AFTER = timedelta(seconds=4)
RULES = """
datapoint_type: {name: load, key: load, interval: 2s, tolerance: 2, on_stale: alarm}
"""
PARTITIONS = 2


def owners_of(partition: int, count: int) -> list[str]:
    names = (f"plant-{number}" for number in range(1000))
    return [name for name in names if partition_of(name, PARTITIONS) == partition][:count]


@pytest.fixture
def own_nats(tmp_path: Path) -> Iterator[Nats]:
    with embedded_nats(tmp_path) as started:
        yield started


@pytest.fixture
def there(settings: Settings, own_nats: Nats) -> Settings:
    return settings.model_copy(
        update={"nats": own_nats.url, "data_partitions": PARTITIONS, "lease_ttl_s": 2.0}
    )


class Producers:
    """Send a datapoint of every owner several times a second, for as long as NATS takes them."""

    def __init__(self, settings: Settings, owners: Sequence[str]) -> None:
        self.owners = set(owners)
        self.ended = asyncio.Event()
        self._settings = settings

    async def run(self) -> None:
        bus = await nats.connect(
            self._settings.nats.split(","), max_reconnect_attempts=-1, reconnect_time_wait=0.1
        )
        js = bus.jetstream(timeout=1)
        try:
            while not self.ended.is_set():
                await asyncio.gather(*(self._send(js, owner) for owner in sorted(self.owners)))
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.ended.wait(), 0.2)
        finally:
            await bus.close()

    async def _send(self, js: nats.js.JetStreamContext, owner: str) -> None:
        with suppress(NatsError, TimeoutError, OSError):
            await js.publish(datapoint_subject(self._settings.subjects, owner, "load"), b'{"value": 1}')


@asynccontextmanager
async def instance(settings: Settings, owners: Sequence[str]) -> AsyncIterator[Producers]:
    """All services, and producers that never stop by themselves."""
    async with running(
        Service("clock", Clock(settings).run),
        Service("cdc", Publisher(settings).run),
        Service("worker", Worker(settings).run),
    ):
        producers = Producers(settings, owners)
        producing = asyncio.create_task(producers.run())
        try:
            yield producers
        finally:
            producers.ended.set()
            await producing


async def wait_for_arrivals(connection: Connection, owners: Collection[str]) -> datetime:
    """Wait until a datapoint of each owner arrives that is later than now; return the last arrival."""
    since = await database_now(connection)
    expected = sorted(owners)

    async def have_arrived() -> bool:
        rows = await all_rows(
            connection,
            "select owner from tocsin.current_value where arrived_at > %s order by owner",
            (since,),
        )
        return [row["owner"] for row in rows if row["owner"] in expected] == expected

    await eventually(have_arrived, "a datapoint of every owner arrives", WITHIN_S)
    row = await one_row(connection, "select max(arrived_at) as at from tocsin.current_value")
    assert isinstance(row["at"], datetime)
    return row["at"]


async def wait_for_watermark(connection: Connection, until: datetime, partition: int | None = None) -> None:
    async def is_read() -> bool:
        row = await one_row(
            connection,
            "select coalesce(bool_and(watermark > %s), false) as is_read from tocsin.lane_partition"
            " where lane = 'data' and (%s::integer is null or partition = %s)",
            (until, partition, partition),
        )
        return bool(row["is_read"])

    await eventually(is_read, "the partitions are read", WITHIN_S)


async def gaps(connection: Connection, partition: int) -> list[ArrivalGap]:
    rows = await all_rows(
        connection,
        "select began_at, ended_at from tocsin.arrival_gap where partition = %s order by began_at",
        (partition,),
    )
    return [ArrivalGap(**row) for row in rows]


async def stale(connection: Connection) -> list[tuple[str, datetime]]:
    rows = await all_rows(
        connection,
        "select owner, ts from tocsin.datapoint_calculated where kind = 'stale' order by owner, ts",
    )
    return [(row["owner"], row["ts"]) for row in rows]


async def deadline(connection: Connection, owner: str, partition: int) -> datetime:
    """The oracle, from the stored arrivals and gaps."""
    row = await one_row(
        connection, "select max(arrived_at) as at from tocsin.datapoint where owner = %s", (owner,)
    )
    return extended_deadline(row["at"], STALE_AFTER, await gaps(connection, partition))


async def wait_for_time(connection: Connection, until: datetime) -> None:
    async def has_come() -> bool:
        return await database_now(connection) > until

    await eventually(has_come, "the time has come", WITHIN_S)


def freeze(server: Nats) -> None:
    os.kill(server.pid, signal.SIGSTOP)


def thaw(server: Nats) -> None:
    os.kill(server.pid, signal.SIGCONT)


@pytest.mark.timeout(600)
async def test_after_an_outage_of_nats_only_a_series_that_stopped_in_it_is_stale(
    there: Settings, connection: Connection, own_nats: Nats
) -> None:
    """Twice, the second time by a restart. The series that stops has the whole tolerance after the first."""
    begun = await database_now(connection)
    await put(connection, RULES)
    (stopping, *steady), others = owners_of(0, 4), owners_of(1, 3)
    async with instance(there, [stopping, *steady, *others]) as producers:
        await wait_for_arrivals(connection, [stopping, *steady, *others])
        for outage in ("frozen", "restarted"):
            (freeze if outage == "frozen" else Nats.kill)(own_nats)
            producers.owners.discard(stopping)
            await wait_for_time(connection, await database_now(connection) + 1.5 * STALE_AFTER)
            assert await stale(connection) == []
            (thaw if outage == "frozen" else Nats.start)(own_nats)
            await wait_for_arrivals(connection, [*steady, *others])
        expected = await deadline(connection, stopping, 0)

        async def is_stale() -> bool:
            return bool(await stale(connection))

        await eventually(is_stale, "the series that stopped is stale", WITHIN_S)
        last = await wait_for_arrivals(connection, [*steady, *others])
        await wait_for_watermark(connection, last)
        expected = await deadline(connection, stopping, 0)
    for partition in range(PARTITIONS):
        lengths = [gap.ended_at - gap.began_at for gap in await gaps(connection, partition)]
        assert sum(length > STALE_AFTER for length in lengths) >= 2, "each outage is a gap"
    first, *_ = await gaps(connection, 0)
    assert await stale(connection) == [(stopping, expected)]
    assert expected >= first.ended_at + STALE_AFTER
    alarms = await all_rows(connection, "select owner from tocsin.alarm where opened_at is not null")
    assert [row["owner"] for row in alarms] == [stopping]
    _, result = await replayed(there, begun, await database_now(connection))
    assert not result.mismatches, "\n".join(map(str, result.mismatches))
    assert [change.owner for change in result.replayed_staleness if change.kind == "stale"] == [stopping]


class RestrictedNats(Nats):
    """A server that denies publishing to some subjects."""

    denied: Sequence[str] = ()

    def _write_config(self, port: int) -> None:
        super()._write_config(port)
        denied = json.dumps(list(self.denied))
        own = re.sub(r"authorization \{.*?\n\}\n", "", self._config_path.read_text(), flags=re.DOTALL)
        self._config_path.write_text(
            f'{own}authorization {{\n  users: [\n    {{user: tocsin, password: "{self._password}",'
            f' permissions: {{publish: {{allow: [">"], deny: {denied}}}, subscribe: [">"]}}}}\n  ]\n}}\n'
        )

    def deny(self, subjects: Sequence[str]) -> None:
        """Deny these subjects from now on."""
        self.denied = subjects
        self._write_config(int(self.url.rpartition(":")[2]))
        os.kill(self.pid, signal.SIGHUP)


@pytest.fixture
def restricted_nats(tmp_path: Path) -> Iterator[RestrictedNats]:
    server = RestrictedNats(tmp_path)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        server.close()


@pytest.mark.timeout(600)
async def test_a_partition_that_takes_no_messages_holds_its_series_and_no_others(
    settings: Settings, connection: Connection, restricted_nats: RestrictedNats
) -> None:
    changes = {"nats": restricted_nats.url, "data_partitions": PARTITIONS, "lease_ttl_s": 2.0}
    there = settings.model_copy(update=changes)
    await put(connection, RULES)
    cut, (stopping, *others) = owners_of(0, 3), owners_of(1, 3)
    async with instance(there, [*cut, stopping, *others]) as producers:
        await wait_for_arrivals(connection, producers.owners)
        restricted_nats.deny(
            [canary_subject(there, 0), *(datapoint_subject(there.subjects, owner, "load") for owner in cut)]
        )
        producers.owners.discard(stopping)

        async def is_stale() -> bool:
            return bool(await stale(connection))

        await eventually(is_stale, "the series that stopped is stale", WITHIN_S)

        async def are_held() -> bool:
            rows = await all_rows(connection, "select distinct lane, partition, kind from tocsin.held_timer")
            return [tuple(row.values()) for row in rows] == [("data", 0, "watchdog")]

        await eventually(are_held, "the watchdogs of the partition are held", WITHIN_S)
        await wait_for_time(connection, await database_now(connection) + STALE_AFTER)
        rows = await all_rows(
            connection,
            "select partition, canary_error is null as is_accepted from tocsin.lane_partition"
            " where lane = 'data' order by partition",
        )
        assert [row["is_accepted"] for row in rows] == [False, True]
        assert {series["cause"] for series in await list_series(connection, owner=cut[0])} == {
            "pipeline-behind"
        }
        restricted_nats.deny([])
        last = await wait_for_arrivals(connection, [*cut, *others])
        await wait_for_watermark(connection, last + STALE_AFTER)
        expected = await deadline(connection, stopping, 1)
    assert await stale(connection) == [(stopping, expected)]
    assert any(gap.ended_at - gap.began_at > STALE_AFTER for gap in await gaps(connection, 0))


@pytest.mark.timeout(600)
async def test_the_loss_of_the_node_that_leads_the_data_stream_makes_no_series_stale(
    settings: Settings, connection: Connection
) -> None:
    """Twice. An election takes longer than the tolerance here."""
    await put(connection, RULES.replace("interval: 2s", "interval: 1s"))
    owners = [*owners_of(0, 3), *owners_of(1, 3)]
    with nats_cluster() as nodes:
        changes = {
            "nats": ",".join(node.url for node in nodes),
            "data_partitions": PARTITIONS,
            "stream_replicas": 3,
        }
        there = settings.model_copy(update=changes)
        async with instance(there, owners):
            await wait_for_arrivals(connection, owners)
            for _ in range(2):
                leader = await _leader_of_data(there, nodes)
                leader.kill()
                await wait_for_time(connection, await wait_for_arrivals(connection, owners) + STALE_AFTER)
                leader.start()
                last = await wait_for_arrivals(connection, owners)
                await wait_for_watermark(connection, last)
    assert await stale(connection) == []
    assert await all_rows(connection, "select * from tocsin.alarm") == []
    assert all([await gaps(connection, partition) for partition in range(PARTITIONS)]), (
        "there was an election"
    )


async def _leader_of_data(settings: Settings, nodes: Sequence[Node]) -> Node:
    """Wait until the data stream has a leader and all its replicas are current; return the leader."""
    bus = await nats.connect(settings.nats.split(","))
    found: list[Node] = []

    async def is_led() -> bool:
        with suppress(NatsError, TimeoutError):
            cluster = (await bus.jetstream(timeout=2).stream_info(settings.data_stream)).cluster
            replicas = (cluster.replicas or []) if cluster is not None else []
            if len(replicas) == 2 and all(replica.current for replica in replicas):
                found[:] = [node for node in nodes if cluster and node.server_name == cluster.leader]
        return bool(found)

    try:
        await eventually(is_led, "the data stream has a leader", WITHIN_S)
    finally:
        await bus.close()
    return found[0]
