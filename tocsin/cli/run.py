"""`tocsin run clock | cdc | worker`: one service against the Postgres and NATS of the environment.

Guarantee: at the start, servers that do not answer and a database that was not migrated end it with one
sentence. Once it runs, it outlasts both servers: their outages are waited out. SIGINT and SIGTERM hand over
and end it with 0.
"""

from __future__ import annotations

import asyncio
import signal
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.errors import finish

if TYPE_CHECKING:
    from tocsin.core.service import Service
    from tocsin.core.settings import Settings


class Role(StrEnum):
    clock = "clock"
    cdc = "cdc"
    worker = "worker"


def run(role: Annotated[Role, typer.Argument(help="Which service; any number of each may run.")]) -> None:
    """Run one service in the foreground, against TOCSIN_POSTGRES and TOCSIN_NATS.

    \b
    Example:
      TOCSIN_POSTGRES=postgresql://me@db/tocsin TOCSIN_NATS=nats://bus:4222 tocsin run clock
    """
    from tocsin.cli.session import current_settings
    from tocsin.core.import_names import refuse_shadowed_names
    from tocsin.core.logs import configure_logs

    refuse_shadowed_names()
    settings = current_settings()
    configure_logs(settings)
    finish(_run(settings, role.value))


async def _run(settings: Settings, role: str) -> None:
    from tocsin.cli.metrics import metrics_endpoint
    from tocsin.cli.session import database, message_bus
    from tocsin.core.service import running

    stop = asyncio.Event()
    stop_on_signals(stop)
    async with database(settings), message_bus(settings):
        pass
    runs = service(settings, role)
    async with metrics_endpoint(settings, [runs]), running(runs):
        await stop.wait()


def service(settings: Settings, role: str) -> Service:
    from cdc.publisher import Publisher
    from clock.service import Clock
    from rules.worker import Worker
    from tocsin.core.service import Service

    runs = {"clock": Clock(settings).run, "cdc": Publisher(settings).run, "worker": Worker(settings).run}
    return Service(role, runs[role])


def stop_on_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
