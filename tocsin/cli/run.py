"""`tocsin run`: runs one service, on the Postgres and the NATS of the environment.

Guarantees: if an address is missing or wrong, or the database is not migrated, the command fails at
once with a message. It waits for a server that does not answer, when it starts as well as later, and
continues when the server is back. SIGINT and SIGTERM end it with exit code 0, after the service has
handed over its work.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.errors import run_command

if TYPE_CHECKING:
    import asyncio

    from tocsin.core.service import Service
    from tocsin.core.settings import Settings


class Role(StrEnum):
    clock = "clock"
    cdc = "cdc"
    worker = "worker"
    api = "api"


def run(role: Annotated[Role, typer.Argument(help="Service to run; any number of each may run.")]) -> None:
    """Run one service in the foreground, on TOCSIN_POSTGRES and TOCSIN_NATS.

    \b
    Example:
      TOCSIN_POSTGRES=postgresql://me@db/tocsin TOCSIN_NATS=nats://bus:4222 tocsin run clock
    """
    from tocsin.cli.session import current_settings
    from tocsin.core.import_names import refuse_shadowed_names
    from tocsin.core.logs import configure_logs
    from tocsin.core.settings import forget_credentials

    refuse_shadowed_names()
    settings = current_settings()
    forget_credentials()
    configure_logs(settings)
    run_command(_run(settings, role.value))


async def _run(settings: Settings, role: str) -> None:
    import asyncio

    import structlog

    from tocsin.cli.metrics import metrics_endpoint
    from tocsin.cli.session import database, message_bus
    from tocsin.core.errors import Unreachable, WrongAddress
    from tocsin.core.service import running
    from tocsin.core.service_manager import reporting
    from tocsin.core.sql_errors import OUTAGE

    stop = asyncio.Event()
    stop_on_signals(stop)
    for open_server in (database, message_bus):
        try:
            async with open_server(settings):
                pass
        except WrongAddress:
            raise
        except (Unreachable, *OUTAGE) as error:  # a connection may break after it was made
            structlog.get_logger().warning("service waits", service=role, error=error)
    with service_of(settings, role) as service:
        async with metrics_endpoint(settings, [service]), running(service), reporting([service]):
            await stop.wait()


@contextmanager
def service_of(settings: Settings, role: str) -> Iterator[Service]:
    """The service of a role. The API has its address for the length of the block; `Refused` if it is in use."""
    if role != "api":
        yield make_service(settings, role)
        return
    from tocsin.api.service import Api, listen
    from tocsin.cli.served import SERVED
    from tocsin.core.service import Service

    with listen(settings) as listening:
        yield Service("api", Api(settings, listening, SERVED).run)


def make_service(settings: Settings, role: str) -> Service:
    from cdc.publisher import Publisher
    from clock.service import Clock
    from rules.worker import Worker
    from tocsin.core.service import Service

    run_of = {"clock": Clock(settings).run, "cdc": Publisher(settings).run, "worker": Worker(settings).run}
    return Service(role, run_of[role])


def stop_on_signals(stop: asyncio.Event) -> None:
    import asyncio
    import signal

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
