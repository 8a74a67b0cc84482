"""What a command needs from outside: its settings, a migrated database, a connection to NATS.

Guarantee: each is opened for the length of a block and closed after it; logs go to stderr, and from a
one-shot command only warnings do, so that stdout is the command's answer and nothing else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tocsin.cli.addresses import read_addresses

if TYPE_CHECKING:
    from nats.aio.client import Client

    from tocsin.core.db import Connection
    from tocsin.core.settings import Settings


def current_settings() -> Settings:
    """From the environment; addresses that it does not name come from a running `up`."""
    from tocsin.core.settings import read_settings

    settings = read_settings()
    found = {key: value for key, value in read_addresses().items() if not getattr(settings, key)}
    return settings.model_copy(update=found)


def command_settings() -> Settings:
    """For a command that answers and ends: quiet, unless the environment asks for more."""
    from tocsin.core.logs import configure_logs

    settings = current_settings()
    quiet = {} if "log_level" in settings.model_fields_set else {"log_level": "warning"}
    configure_logs(settings.model_copy(update=quiet))
    return settings


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
