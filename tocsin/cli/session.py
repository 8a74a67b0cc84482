"""The resources of a command: its settings, a migrated database, a connection to NATS.

Guarantees: each is opened for a block and closed after it. Logs go to stderr, and a command that
answers and ends logs warnings and errors only, so that stdout holds its answer and nothing else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nats.aio.client import Client

    from tocsin.core.audit import Actor
    from tocsin.core.db import Connection
    from tocsin.core.settings import Settings
    from tocsin.policy import Operation


def current_settings() -> Settings:
    """The settings of the environment; addresses that it does not name come from a running `up`."""
    from tocsin.core.addresses import with_addresses
    from tocsin.core.settings import read_settings

    return with_addresses(read_settings())


def command_settings() -> Settings:
    """The settings of a command that answers and ends. Configures its logs."""
    from tocsin.core.logs import configure_command_logs

    settings = current_settings()
    configure_command_logs(settings)
    return settings


def admin_settings() -> Settings:
    """The settings of a command that creates or deletes streams: a running `up` has a user for these."""
    from tocsin.core.addresses import as_admin

    return as_admin(command_settings())


@asynccontextmanager
async def database(settings: Settings | None = None) -> AsyncIterator[Connection]:
    """A session on a migrated database."""
    from migrations.runner import refuse_unmigrated
    from tocsin.core.db import open_session

    async with open_session(settings or command_settings(), "command line") as connection:
        await refuse_unmigrated(connection)
        yield connection


@asynccontextmanager
async def message_bus(settings: Settings) -> AsyncIterator[Client]:
    from tocsin.core.bus import open_bus

    async with open_bus(settings, "command line") as bus:
        yield bus


async def command_actor(
    connection: Connection, who: str, operation: Operation, owner: str | None = None
) -> Actor:
    """The author and the instant of a change, if the session may make it.

    The author is the role of the session, see `tocsin.core.audit`.
    """
    from tocsin.cli.access import require
    from tocsin.core.audit import acting

    await require(connection, operation, owner)
    return await acting(connection, who, "cli")
