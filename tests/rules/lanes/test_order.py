"""Several workers that are killed and frozen conclude the same from a stream as one worker that reads it later."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from schemas.wire.subjects import datapoint_subject
from tests.cdc.published_records import with_long_timeouts
from tests.conftest import with_database
from tests.databases import clone_template, drop_database
from tests.faults.clocks import WITHIN_S, Clocks
from tests.faults.plan import let_time_pass
from tests.rules.apply.apply_setup import put
from tests.rules.lanes.counting_work import effects, make_effects
from tests.rules.lanes.lane_setup import jetstream, make_stream
from tests.rules.lanes.workers import Workers, inflict
from tests.sql import all_rows
from tests.wait import eventually_sync
from tocsin.core.db import connect
from tocsin.core.settings import Settings
from tocsin.embedded import Servers

RULES = """
datapoint_type: {name: load, key: dsp.*, interval: 100ms, on_stale: alarm, for: 100ms}
---
event_rule: {name: hot, datapoint: dsp.*, fire: value > 65.0, clear: value < 60.0, for: 150ms, keep_firing_for: 100ms,
             message: "{{ key }} of {{ owner }} is at {{ value }}"}
---
event_rule: {name: quiet, datapoint: dsp.*, absent: true}
---
event_rule: {name: strict, datapoint: dsp.*, below: 45, no_data: alarm, no_data_for: 50ms}
---
event_rule: {name: lenient, datapoint: dsp.*, above: 55, no_data: resolve}
---
event_rule: {name: mean, datapoint: dsp.*, above: 60, window: {over: 500ms, reduce: avg}}
---
event_rule: {name: steep, datapoint: dsp.a, rate_increase: 50, for: 30ms}
---
event_rule: {name: rare, datapoint: dsp.b, above: 60, cooldown: 700ms}
"""
NAMES = {"hot", "quiet", "strict", "lenient", "mean", "steep", "rare", "stale:load"}
OWNERS = [f"plant {number}" for number in range(16)]
FAULTS = ("kill written", "stop written", "kill planned")
# Longer than the deadline of any series.
STALE_AFTER_S = 0.6
_PULSE_S = 0.5


class Producer(threading.Thread):
    """Sends batches of random series; at the end one datapoint of each owner, after all became stale."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(daemon=True)
        self._settings = settings
        self._end = threading.Event()
        self._chance = random.Random(6)
        self.sent = 0
        self._pulsed_s = 0.0

    def run(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        async with jetstream(self._settings) as js:
            while not self._end.wait(0.02):
                await self._pulse(js)
                for owner in self._chance.sample(OWNERS, 6):
                    keys = self._chance.choices(("dsp.a", "dsp.b", "dsp.c"), k=2)
                    values = (self._chance.choice([40.0, 50.0, 62.0, 66.0, 80.0]) for _ in keys)
                    await self._send(js, owner, zip(keys, values, strict=True))
            threading.Event().wait(STALE_AFTER_S)
            for owner in OWNERS:
                await self._send(js, owner, [("end", 0.0)])

    async def _pulse(self, js: Any) -> None:
        """Keep every partition busy: canaries that prevented a gap may expire before the late worker reads."""
        if time.monotonic() - self._pulsed_s > _PULSE_S:
            self._pulsed_s = time.monotonic()
            for owner in OWNERS:
                await self._send(js, owner, [("pulse", 0.0)])

    async def _send(self, js: Any, owner: str, datapoints: Any) -> None:
        batch = [{"key": key, "value": value} for key, value in datapoints]
        await js.publish(
            datapoint_subject(self._settings.subjects, owner, ""), json.dumps({"batch": batch}).encode()
        )
        self.sent += len(batch)

    def finish(self) -> int:
        self._end.set()
        self.join(WITHIN_S)
        return self.sent


@pytest.fixture
def late(short_lease: Settings, template: str) -> Iterator[Settings]:
    """Another database that reads the same stream. Its worker is not killed, so its lease can be long."""
    name = f"{short_lease.namespace}_late"
    clone_template(template, name)
    yield short_lease.model_copy(update={"postgres": with_database(template, name), "lease_ttl_s": 10.0})
    drop_database(template, name)


async def prepare(settings: Settings) -> None:
    await make_stream(settings)
    connection = await connect(with_long_timeouts(settings), "test")
    await make_effects(connection)
    await put(connection, RULES)
    await connection.close()


def instance(
    stack: ExitStack, settings: Settings, folder: Path, workers: int, clocks: int
) -> tuple[Workers, Clocks]:
    asyncio.run(prepare(settings))
    made = Clocks(settings, folder / "clocks", clocks)
    stack.callback(made.close)
    started = Workers(settings, folder / "workers", workers)
    stack.callback(started.close)
    return started, made


def wait_until_decided(workers: Workers, datapoints: int) -> None:
    """Wait until everything is stored and evaluated, and no deadline is left."""
    query = (
        f"select (select count(*) from tocsin.datapoint) = {datapoints} and not exists (select from tocsin.timer)"
        " and not exists (select from tocsin.current_value where handled_stale_since is distinct from stale_since)"
    )
    eventually_sync(lambda: workers.try_read(query) == (True,), "everything is decided", WITHIN_S)


def sleep_over_deadlines(workers: Workers) -> None:
    """While no worker reads, the clock must not make series stale whose datapoints are unread."""
    for process in workers.processes:
        process.freeze()
    let_time_pass(STALE_AFTER_S)
    for process in workers.processes:
        process.thaw()


async def concluded(settings: Settings) -> dict[str, list[dict[str, Any]]]:
    """All results without the writer, the time of the write, the batches and the order of owners."""
    queries = {
        "alarms": "select id, event_rule, owner, state, severity, since, opened_at, resolved_at, resolved_reason,"
        " payload::text, correlation_id from tocsin.alarm order by id",
        "transitions": "select id, ts, origin, type, rule, owner, alarm_id, severity, source_event_id, correlation_id,"
        " payload::text from tocsin.event where alarm_id is not null order by id",
        "staleness": "select id, owner, key, ts, kind, payload::text from tocsin.datapoint_calculated order by id",
        "states": "select event_rule, owner, instance, phase, alarm_id, state::text from tocsin.rule_state"
        " order by 1, 2, 3",
        "series": "select owner, key, value, ts, arrived_at, stream_seq, first_arrived_at, freshness, stale_since,"
        " handled_stale_since from tocsin.current_value order by 1, 2",
        "datapoints": "select * from tocsin.datapoint order by arrived_at, stream_seq, position",
    }
    connection = await connect(with_long_timeouts(settings), "test")
    try:
        results = {name: await all_rows(connection, query) for name, query in queries.items()}
        taken = await effects(connection)
    finally:
        await connection.close()
    by_owner = {owner: [row["seq"] for row in taken if row["owner"] == owner] for owner in OWNERS}
    return {**results, "order": [{"owner": owner, "seqs": seqs} for owner, seqs in by_owner.items()]}


@pytest.mark.timeout(600)
def test_four_workers_that_are_killed_and_frozen_conclude_what_one_late_worker_does(
    servers: Servers, short_lease: Settings, late: Settings, tmp_path: Path
) -> None:
    """The same stream, so the same arrivals: first while they come, then all at once later."""
    with ExitStack() as stack:
        workers, clocks = instance(stack, short_lease, tmp_path / "four", 4, 2)
        workers.wait_until_held_by({process.pid for process in workers.processes})
        producer = Producer(short_lease)
        producer.start()
        for fault in FAULTS:
            inflict(servers, workers, fault)
        sleep_over_deadlines(workers)
        clocks.replace(clocks.leader())
        sent = producer.finish()
        wait_until_decided(workers, sent)
    with ExitStack() as stack:
        worker, _ = instance(stack, late, tmp_path / "one", 1, 1)
        wait_until_decided(worker, sent)
    of_four, of_one = asyncio.run(concluded(short_lease)), asyncio.run(concluded(late))
    for name, rows in of_one.items():
        assert of_four[name] == rows, name
    assert {row["event_rule"] for row in of_one["alarms"]} == NAMES
    assert len(of_one["staleness"]) > len(OWNERS)
