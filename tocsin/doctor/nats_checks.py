"""The checks of the doctor that need NATS: version, leaders, streams, consumers, dead letters."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

from cdc.log_reader import LogReader
from clock.lease import current_holder
from clock.time_source import steady_s, wall_now
from migrations.runner import refuse_unmigrated
from rules.actions.due_steps import CONSUMERS as ACTION_CONSUMERS
from rules.lanes.dead_letters import count_dead_letters, read_dead_letters
from rules.lanes.status import list_lanes, list_worker_problems, list_workers
from timers.time_text import utc_text
from tocsin.core.db import Connection, fetch_all, fetch_one
from tocsin.core.errors import TocsinError
from tocsin.core.instant import parse_instant
from tocsin.core.settings import Settings
from tocsin.core.streams import find
from tocsin.doctor.checks import (
    Finding,
    Workers,
    check_epoch_holder,
    check_lane,
    check_leader,
    check_log_lag,
    check_worker_lag,
)
from tocsin.doctor.stream_findings import check_dead_letters, check_replicas, jetstream_failed

_TIMEOUT_S = 3.0
_POLL_S = 0.2
# The durable consumer of external events that all workers share.
_EVENT_CONSUMER = "events"


async def check_nats(bus: Client, settings: Settings, connection: Connection | None) -> list[Finding]:
    """Check NATS and, if `connection` is given and migrated, compare it with Postgres."""
    js = bus.jetstream(timeout=_TIMEOUT_S)
    address = bus.connected_url.netloc.rpartition("@")[2] if bus.connected_url else "?"
    findings = [Finding("ok", "nats", f"{_version(bus)} at {address}")]
    try:
        await js.account_info()
        return [*findings, *await _jetstream_checks(js, bus, settings, connection)]
    except (NatsError, TimeoutError) as error:
        return [*findings, jetstream_failed(error)]


async def _jetstream_checks(
    js: JetStreamContext, bus: Client, settings: Settings, connection: Connection | None
) -> list[Finding]:
    findings: list[Finding] = []
    workers, sessions = Workers(), {}
    if connection is not None and await _is_migrated(connection):
        sessions = dict(await fetch_all(connection, "tocsin.doctor/count_sessions"))
        workers = Workers(
            await list_workers(connection), await list_worker_problems(connection), sessions.get("worker", 0)
        )
        findings += await _database_checks(js, bus, settings, connection, workers, sessions.get("clock", 0))
    findings.append(
        check_leader("cdc", await current_holder(bus, settings, "cdc"), "", sessions.get("cdc", 0))
    )
    consumers = tuple(ACTION_CONSUMERS.values())
    findings.append(await _consumer_check(js, "perform", settings.stream, consumers, workers))
    findings.append(await _consumer_check(js, "ingest", settings.ingest_stream, (_EVENT_CONSUMER,), workers))
    findings += await _replica_checks(js, settings)
    newest = await read_dead_letters(js, settings, None, 1)
    newest_at = parse_instant(newest[0]["at"]) if newest else None
    findings.append(check_dead_letters(await count_dead_letters(js, settings), newest_at, wall_now()))
    return findings


async def _replica_checks(js: JetStreamContext, settings: Settings) -> list[Finding]:
    names = (
        *(settings.stream, settings.data_stream, settings.ingest_stream, settings.report_stream),
        *(settings.dead_stream, f"KV_{settings.lease_bucket}"),
    )
    streams = {name: await find(js, name) for name in names}
    found = {name: info for name, info in streams.items() if info is not None}
    is_clustered = any(info.cluster is not None and info.cluster.name for info in found.values())
    return check_replicas({name: info.config.num_replicas or 1 for name, info in found.items()}, is_clustered)


async def _consumer_check(
    js: JetStreamContext, purpose: str, stream: str, consumers: Sequence[str], workers: Workers
) -> Finding:
    pending = unacknowledged = 0
    for consumer in consumers:
        try:
            info = await js.consumer_info(stream, consumer)
        except NotFoundError:
            return check_worker_lag(purpose, None, 0, workers)
        pending += info.num_pending or 0
        unacknowledged += info.num_ack_pending or 0
    return check_worker_lag(purpose, pending, unacknowledged, workers)


def _version(bus: Client) -> str:
    version = bus.connected_server_version
    return f"{version.major}.{version.minor}.{version.patch}"


async def _database_checks(
    js: JetStreamContext,
    bus: Client,
    settings: Settings,
    connection: Connection,
    workers: Workers,
    clock_sessions: int,
) -> list[Finding]:
    """The checks that compare NATS with Postgres."""
    # The stream is read before the head. In the other order, a record that is committed and
    # published in between would look like a stream that is ahead of the log.
    try:
        last = int((await js.stream_info(settings.stream)).state.last_seq)
    except NotFoundError:
        last = None
    head = await LogReader(connection).head()
    row = await fetch_one(connection, "cdc/read_leader")
    assert row is not None
    epoch, _, taken_at = row
    holder, writer = await _clock_holders(bus, settings, connection)
    since = f" since {utc_text(taken_at)}" if holder is not None and taken_at is not None else ""
    return [
        check_leader("clock", holder, f", epoch {epoch}{since}", clock_sessions),
        *check_epoch_holder(holder, writer),
        check_log_lag(head, last, settings.stream),
        *await _lane_checks(js, settings, connection, head, workers),
    ]


async def _clock_holders(
    bus: Client, settings: Settings, connection: Connection
) -> tuple[str | None, str | None]:
    """Who has the lease, and who has the newest epoch. Read again for some time while they differ."""
    patient_until_s = steady_s() + settings.lease_ttl_s
    while True:
        holder = await current_holder(bus, settings, "clock")
        _, writer, _ = await fetch_one(connection, "cdc/read_leader")
        if holder is None or holder == writer or steady_s() > patient_until_s:
            return holder, writer
        await asyncio.sleep(_POLL_S)


async def _lane_checks(
    js: JetStreamContext, settings: Settings, connection: Connection, head: int, workers: Workers
) -> list[Finding]:
    partitions = await list_lanes(connection)
    record = [partition for partition in partitions if partition.lane == "record"]
    data = [partition for partition in partitions if partition.lane == "data"]
    try:
        waiting = sum(info.num_pending or 0 for info in await js.consumers_info(settings.data_stream))
    except NotFoundError:
        waiting = None
    unread = max((head - partition.last_seq for partition in record), default=None)
    return [
        check_lane("record", record, unread, workers),
        check_lane("data", data, waiting, workers),
    ]


async def _is_migrated(connection: Connection) -> bool:
    try:
        await refuse_unmigrated(connection)
    except TocsinError:
        return False
    return True
