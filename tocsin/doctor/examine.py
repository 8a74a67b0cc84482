"""All checks of an instance.

Guarantee: the list is whole. A server that does not answer is one red finding, and the checks that need it
are left out.
"""

from __future__ import annotations

import platform
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from importlib.metadata import version

from nats.aio.client import Client

from timers.recurrence.zones import tz_version
from tocsin.core.db import Connection
from tocsin.core.errors import TocsinError
from tocsin.core.settings import Settings
from tocsin.doctor.checks import (
    Finding,
    check_import_names,
    check_tz_data,
    explained,
    failed,
    system_tz_version,
)
from tocsin.doctor.database_checks import check_database
from tocsin.doctor.nats_checks import check_nats
from tocsin.doctor.security_checks import check_nats_access, check_settings, secure_finding


async def examine(
    settings: Settings,
    session: AbstractAsyncContextManager[Connection],
    bus: AbstractAsyncContextManager[Client],
) -> list[Finding]:
    """The findings about this process and the servers."""
    return [*_check_process(), *await _check_servers(settings, session, bus)]


def _check_process() -> list[Finding]:
    return [
        *check_import_names(f"{version('tocsin')} on python {platform.python_version()}"),
        check_tz_data(tz_version(), system_tz_version()),
    ]


async def _check_servers(
    settings: Settings,
    session: AbstractAsyncContextManager[Connection],
    bus: AbstractAsyncContextManager[Client],
) -> list[Finding]:
    findings: list[Finding] = []
    insecure = check_settings(settings)
    async with AsyncExitStack() as servers:
        connection = client = None
        try:
            connection = await servers.enter_async_context(session)
        except TocsinError as error:
            findings.append(failed("postgres", error))
        try:
            client = await servers.enter_async_context(bus)
        except TocsinError as error:
            findings.append(failed("nats", error))
        if connection is not None:
            findings += await check_database(connection, settings)
        if client is not None:
            findings += await check_nats(client, settings, connection)
            insecure += check_nats_access(client)
    return explained([*findings, *secure_finding(insecure)])
