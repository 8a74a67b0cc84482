"""`tocsin doctor`: checks an instance, with a remedy for each problem. Reads only.

Guarantee: it always prints the whole list. A server that does not answer is one red line, and the
checks that need it are left out. The exit code is 1 if anything is red.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json
from tocsin.cli.output import print_json, printable
from tocsin.core.errors import TocsinError

if TYPE_CHECKING:
    from tocsin.cli.doctor.checks import Finding
    from tocsin.core.settings import Settings

_COLOURS = {"ok": typer.colors.GREEN, "red": typer.colors.RED, "info": typer.colors.BLUE}


def doctor(as_json: Json = False) -> None:
    """Check servers, services, clocks and lag, with a remedy for each problem.

    \b
    Example:
      tocsin doctor
    """
    from tocsin.cli.session import command_settings

    findings = [*_local_checks(), *run_command(_server_checks(command_settings()))]
    if as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        width = max(len(finding.subject) for finding in findings)
        for finding in findings:
            _print(finding, width)
    if any(finding.state == "red" for finding in findings):
        raise typer.Exit(1)


def _print(finding: Finding, width: int) -> None:
    # `echo` removes the colours if the output is not a terminal.
    state = typer.style(f"{finding.state:<4}", fg=_COLOURS[finding.state])
    typer.echo(f"{state}  {finding.subject:<{width}}  {printable(finding.text)}")
    if finding.remedy:
        typer.echo(f"{'':4}  {'':{width}}  -> {printable(finding.remedy)}")


def _local_checks() -> list[Finding]:
    import platform
    from importlib.metadata import version

    from timers.recurrence.zones import tz_version
    from tocsin.cli.doctor.checks import check_import_names, check_tz_data, system_tz_version

    return [
        *check_import_names(f"{version('tocsin')} on python {platform.python_version()}"),
        check_tz_data(tz_version(), system_tz_version()),
    ]


async def _server_checks(settings: Settings) -> list[Finding]:
    from tocsin.cli.doctor.checks import explained, failed
    from tocsin.cli.doctor.database_checks import check_database
    from tocsin.cli.doctor.nats_checks import check_nats
    from tocsin.cli.doctor.security_checks import check_nats_access, check_settings, secure_finding
    from tocsin.core.bus import open_bus
    from tocsin.core.db import open_session

    findings: list[Finding] = []
    insecure = check_settings(settings)
    async with AsyncExitStack() as servers:
        connection = bus = None
        try:
            connection = await servers.enter_async_context(open_session(settings, "doctor"))
        except TocsinError as error:
            findings.append(failed("postgres", error))
        try:
            bus = await servers.enter_async_context(open_bus(settings, "doctor"))
        except TocsinError as error:
            findings.append(failed("nats", error))
        if connection is not None:
            findings += await check_database(connection, settings)
        if bus is not None:
            findings += await check_nats(bus, settings, connection)
            insecure += check_nats_access(bus)
    return explained([*findings, *secure_finding(insecure)])
