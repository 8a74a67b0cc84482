"""Reports the state of this process to the service manager that started it (systemd, `Type=notify`).

Guarantee: `READY=1` is sent once the services run. Then `WATCHDOG=1` is sent as long as the event loop
turns and no loop of a service hangs. systemd restarts a process that stops sending it. Waiting for
Postgres or NATS is not hanging: a restart would not help, and `STATUS` shows the reason.

Without a service manager nothing is sent.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

from tocsin.core.service import Service, end_tasks

_STATUS_S = 5.0


@asynccontextmanager
async def reporting(
    services: Sequence[Service], environment: Mapping[str, str] = os.environ
) -> AsyncIterator[None]:
    """Report for the length of the block. Enter it when the services were started."""
    address = environment.get("NOTIFY_SOCKET")
    if not address:
        yield
        return
    _send(address, "READY=1")
    task = asyncio.create_task(_report(address, services, _interval_s(environment)))
    try:
        yield
    finally:
        _send(address, "STOPPING=1")
        await end_tasks([task])


async def _report(address: str, services: Sequence[Service], interval_s: float) -> None:
    while True:
        problems = [f"{service.name}: {problem}" for service in services if (problem := service.problem)]
        lines = [f"STATUS={'; '.join(problems)[:500] or 'running'}"]
        if not any(service.is_stuck for service in services):
            lines.append("WATCHDOG=1")
        _send(address, "\n".join(lines))
        await asyncio.sleep(interval_s)


def _interval_s(environment: Mapping[str, str]) -> float:
    """A third of the time within which systemd expects a report."""
    microseconds = environment.get("WATCHDOG_USEC", "")
    return min(_STATUS_S, int(microseconds) / 3_000_000) if microseconds.isdecimal() else _STATUS_S


def _send(address: str, text: str) -> None:
    """Send one datagram. The manager may be gone, or its queue full: the next one is tried then."""
    name = f"\0{address[1:]}" if address.startswith("@") else address
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
        manager.setblocking(False)
        manager.sendto(text.encode(), name)
