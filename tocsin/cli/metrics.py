"""`tocsin metrics`: prints metrics for Prometheus. Services serve the same at `TOCSIN_METRICS`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import typer

from tocsin.cli.errors import run_command

if TYPE_CHECKING:
    from tocsin.core.metrics import Metrics
    from tocsin.core.service import Service
    from tocsin.core.settings import Settings


def metrics() -> None:
    """Print metrics of the instance in the text format of Prometheus.

    \b
    Example:
      tocsin metrics > /var/lib/node_exporter/tocsin.prom
    """
    typer.echo(run_command(_metrics()), nl=False)


async def _metrics() -> str:
    from tocsin.cli.session import database
    from tocsin.core.metrics import format_metrics
    from tocsin.metrics.database_metrics import read_database_metrics, set_session_timeout

    async with database() as connection:
        await set_session_timeout(connection)
        return format_metrics([await read_database_metrics(connection)])


@asynccontextmanager
async def metrics_endpoint(settings: Settings, services: Sequence[Service]) -> AsyncIterator[None]:
    """Serve metrics for the length of the block, if `TOCSIN_METRICS` names an address."""
    if not settings.metrics:
        yield
        return
    from tocsin.core.listen_address import ListenAddress
    from tocsin.metrics.exposition import Exposition
    from tocsin.metrics.server import serve_metrics

    exposition = Exposition(settings, services, groups_of([service.name for service in services]))
    async with serve_metrics(ListenAddress.parse(settings.metrics), exposition, settings.metrics_token):
        yield


def groups_of(roles: Sequence[str]) -> list[Metrics]:
    """The metrics that a process with these services counts itself."""
    from cdc.metrics import PUBLISHER_METRICS
    from clock.metrics import CLOCK, LEASES
    from rules.metrics import WORKER

    groups = {"clock": [LEASES, CLOCK], "cdc": [LEASES, PUBLISHER_METRICS], "worker": [WORKER], "api": []}
    return list(dict.fromkeys(group for role in roles for group in groups[role]))
