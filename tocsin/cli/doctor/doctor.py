"""`tocsin doctor`: what runs where, how far each part lags, and what to do about each red line.

Guarantee: it always gives the whole list; a server that does not answer is one red line and the lines that
need it are left out. Exit code 1 if anything is red.
"""

from __future__ import annotations

import platform
from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING

import typer

from tocsin.cli.errors import finish
from tocsin.cli.options import Json
from tocsin.cli.output import print_json, printable
from tocsin.core.errors import TocsinError

if TYPE_CHECKING:
    from tocsin.cli.doctor.checks import Finding
    from tocsin.core.settings import Settings

_COLOURS = {"ok": typer.colors.GREEN, "red": typer.colors.RED, "info": typer.colors.BLUE}


def doctor(as_json: Json = False) -> None:
    """Check versions, tz data, clocks, leaders and lag; say what to do about what is wrong.

    \b
    Example:
      tocsin doctor
    """
    from tocsin.cli.session import command_settings

    found = [*_here(), *finish(_servers(command_settings()))]
    if as_json:
        print_json([one._asdict() for one in found])
    else:
        width = max(len(one.subject) for one in found)
        for one in found:
            _print(one, width)
    if any(one.state == "red" for one in found):
        raise typer.Exit(1)


def _print(one: Finding, width: int) -> None:
    # echo drops the colours by itself where the output is not a terminal.
    state = typer.style(f"{one.state:<4}", fg=_COLOURS[one.state])
    typer.echo(f"{state}  {one.subject:<{width}}  {printable(one.text)}")
    if one.remedy:
        typer.echo(f"{'':4}  {'':{width}}  -> {printable(one.remedy)}")


def _here() -> list[Finding]:
    from timers.recurrence.zones import tz_version
    from tocsin.cli.doctor.checks import import_names, system_tz_version, tz_data

    return [
        *import_names(f"{version('tocsin')} on python {platform.python_version()}"),
        tz_data(tz_version(), system_tz_version()),
    ]


async def _servers(settings: Settings) -> list[Finding]:
    from tocsin.cli.doctor.checks import Finding, split_remedy
    from tocsin.cli.doctor.database_checks import look_at_database
    from tocsin.cli.doctor.nats_checks import look_at_bus
    from tocsin.core.bus import connect_bus
    from tocsin.core.db import connect

    found: list[Finding] = []
    connection = bus = None
    try:
        try:
            connection = await connect(settings, "doctor")
        except TocsinError as error:
            found.append(Finding("red", "postgres", *split_remedy(error)))
        try:
            bus = await connect_bus(settings, "doctor")
        except TocsinError as error:
            found.append(Finding("red", "nats", *split_remedy(error)))
        if connection is not None:
            found += await look_at_database(connection, settings)
        if bus is not None:
            found += await look_at_bus(bus, settings, connection)
        return found
    finally:
        if connection is not None:
            await connection.close()
        if bus is not None:
            with suppress(Exception):
                await bus.close()
