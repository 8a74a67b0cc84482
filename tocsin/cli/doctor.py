"""`tocsin doctor`: checks an instance, with a remedy for each problem. Reads only.

Guarantee: it always prints the whole list. A server that does not answer is one red line, and the
checks that need it are left out. The exit code is 1 if anything is red.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json
from tocsin.cli.output import print_json, printable
from tocsin.cli.remote.over_http import over_http

if TYPE_CHECKING:
    from tocsin.core.settings import Settings
    from tocsin.doctor.checks import Finding

_COLOURS = {"ok": typer.colors.GREEN, "red": typer.colors.RED, "info": typer.colors.BLUE}


def doctor(as_json: Json = False) -> None:
    """Check servers, services, clocks and lag, with a remedy for each problem.

    \b
    Example:
      tocsin doctor
    """
    from tocsin.cli.session import command_settings

    findings = run_command(_examine(command_settings()))
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


@over_http("instance.examine")
async def _examine(settings: Settings) -> list[Finding]:
    from tocsin.core.bus import open_bus
    from tocsin.core.db import open_session
    from tocsin.doctor.examine import examine

    return await examine(settings, open_session(settings, "doctor"), open_bus(settings, "doctor"))
