"""`tocsin metrics`: how the house is, as Prometheus reads it; and the page that services serve beside their work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import typer

from tocsin.cli.errors import finish

if TYPE_CHECKING:
    from tocsin.core.metrics import Metrics
    from tocsin.core.service import Service
    from tocsin.core.settings import Settings


def metrics() -> None:
    """Print the figures of the house in the text format of Prometheus, for people and for a textfile collector.

    \b
    Example:
      tocsin metrics | grep verdicts_held
    """
    typer.echo(finish(_metrics()), nl=False)


async def _metrics() -> str:
    from tocsin.cli.session import database
    from tocsin.core.metrics import text
    from tocsin.metrics.database_metrics import prepare, read_house

    async with database() as connection:
        await prepare(connection)
        return text([await read_house(connection)])


@asynccontextmanager
async def metrics_page(settings: Settings, services: Sequence[Service]) -> AsyncIterator[None]:
    """For the length of the block, if `TOCSIN_METRICS` says where."""
    if not settings.metrics:
        yield
        return
    from tocsin.core.listen_address import ListenAddress
    from tocsin.metrics.exposition import Page
    from tocsin.metrics.server import serving

    page = Page(settings, services, groups_of([service.name for service in services]))
    async with serving(ListenAddress.parse(settings.metrics), page):
        yield


def groups_of(roles: Sequence[str]) -> list[Metrics]:
    """What processes that run these services count of themselves."""
    from cdc.metrics import CDC
    from clock.metrics import CLOCK, LEASES
    from rules.metrics import WORKER

    of_role = {"clock": [LEASES, CLOCK], "cdc": [LEASES, CDC], "worker": [WORKER]}
    return list(dict.fromkeys(group for role in roles for group in of_role[role]))
