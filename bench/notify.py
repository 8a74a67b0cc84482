"""Alarms that open at once, in groups, with one target down: the time until the other has all of them.

`--alarms` alarms on `--sites` sites open in one burst. An action_rule groups them by site and notifies two
channels: one receiver answers, the other refuses connections. Reported: the seconds from the commit of the
last opening until the receiver was told about every alarm, without `group_wait`; the number of messages; the
notifications that fail and are retried; and the largest memory of the worker.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from psycopg.types.json import Jsonb

from bench.database import bench_servers, migrated
from bench.processes import running
from rules.apply import apply
from rules.documents.load import load_text
from tocsin.core.audit import Actor
from tocsin.core.db import Connection, fetch_value, statement
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.embedded import Servers

_GROUP_WAIT_S = 5.0
_BATCH = 1_000
_LIMIT_S = 600.0
_RULES = """
event_rule: {{name: hot, datapoint: t, above: 5, severity: high}}
---
channel: {{name: up, webhook: {{url: "http://127.0.0.1:{up}/x"}}}}
---
channel: {{name: down, webhook: {{url: "http://127.0.0.1:{down}/x"}}}}
---
action_rule:
  {{name: page, on: alarm, notify: [up, down], group_by: [labels.site], group_wait: {wait}s, group_interval: 5s}}
"""


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench notify")
    parser.add_argument("--alarms", type=int, default=10_000)
    parser.add_argument("--sites", type=int, default=200)
    options = parser.parse_args(arguments)
    os.environ["TOCSIN_EGRESS_ALLOW"] = "127.0.0.1"
    with bench_servers() as servers:
        return asyncio.run(_measure(servers, options.alarms, options.sites))


class _Receiver:
    """Counts the alarms of the messages that it accepts."""

    def __init__(self, expected: int) -> None:
        self.told: set[str] = set()
        self.messages = 0
        self.has_all = asyncio.Event()
        self._expected = expected

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = next(int(line[15:]) for line in head.split("\r\n") if line.startswith("content-length:"))
        body = json.loads(await reader.readexactly(length))
        self.told |= {alarm["alarm_id"] for alarm in body["alarms"]}
        self.messages += 1
        if len(self.told) >= self._expected:
            self.has_all.set()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()


async def _measure(servers: Servers, alarms: int, sites: int) -> dict[str, object]:
    receiver = _Receiver(alarms)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0, limit=2**24, backlog=1_000)
    up = server.sockets[0].getsockname()[1]
    async with migrated(servers) as (settings, connection):
        text = _RULES.format(up=up, down=_closed_port(), wait=int(_GROUP_WAIT_S))
        await apply(connection, load_text(text), Actor("bench", "bench", datetime.now(UTC)))
        with running(settings, "cdc", "clock", "worker") as processes:
            await _wait_for_worker(connection)
            await _open(connection, alarms, sites)
            opened_s = time.monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LIMIT_S):
                    await receiver.has_all.wait()
            took_s = time.monotonic() - opened_s
            memory_mb = _peak_memory_mb(processes[-1].pid)
            failing = await fetch_value(connection, "bench/count_failing")
    server.close()
    return {
        "name": "notify",
        "alarms": alarms,
        "groups": sites,
        "delivered": len(receiver.told),
        "messages": receiver.messages,
        "seconds_until_all_delivered": took_s,
        "without_group_wait_s": max(0.0, took_s - _GROUP_WAIT_S),
        "alarms_per_s": alarms / took_s,
        "failing_notifications": failing,
        "worker_peak_mb": memory_mb,
        "goal": "all alarms delivered although one target is down; the worker below 500 MB",
    }


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _wait_for_worker(connection: Connection) -> None:
    for _ in range(1_200):
        if await fetch_value(connection, "bench/has_worker"):
            return
        await asyncio.sleep(0.05)


async def _open(connection: Connection, alarms: int, sites: int) -> None:
    for first in range(0, alarms, _BATCH):
        numbers = range(first, min(first + _BATCH, alarms))
        rows = [
            (uuid.uuid4(), f"dev-{number}", {"labels": {"site": f"s{number % sites}"}, "value": 9})
            for number in numbers
        ]
        columns = {
            "ids": [id for id, _, _ in rows],
            "owners": [owner for _, owner, _ in rows],
            "payloads": [Jsonb(payload) for _, _, payload in rows],
        }
        now = datetime.now(UTC)
        async with connection.transaction():
            await connection.execute(statement("bench/open_alarms"), columns)
            await append_events(
                connection,
                [
                    NewEvent(
                        now,
                        "derived",
                        "alarm-opened",
                        payload,
                        rule="hot",
                        owner=owner,
                        alarm_id=id,
                        severity=4,
                    )
                    for id, owner, payload in rows
                ],
            )


def _peak_memory_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0
