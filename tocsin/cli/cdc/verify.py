"""`tocsin cdc verify`: compares every record of a range in the log and in the stream. Reads
only."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json
from tocsin.cli.output import print_json, printable

if TYPE_CHECKING:
    from cdc.verify import VerifyResult


def verify(
    first: Annotated[
        int | None, typer.Option("--from", min=1, help="First seq; by default the first that both have.")
    ] = None,
    last: Annotated[
        int | None, typer.Option("--until", min=1, help="Last seq; by default the last that both have.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare the records of the log with the messages of the stream.

    Compares IDs, order, subjects and bodies. The exit code is 1 if anything differs.

    \b
    Example:
      tocsin cdc verify --from 100000 --until 200000
    """
    result = run_command(_verify(first, last))
    if as_json:
        print_json(asdict(result))
    else:
        _print(result)
    if result.different:
        raise typer.Exit(1)


def _print(result: VerifyResult) -> None:
    if result.last < result.first:
        typer.echo("nothing to compare: log and stream have no common records yet")
        return
    for difference in result.differences:
        typer.echo(f"{difference.seq}: {printable(difference.what)}")
    if result.different > len(result.differences):
        typer.echo(f"and {result.different - len(result.differences)} more")
    accepted = f", {result.accepted} in recorded gaps" if result.accepted else ""
    differ = f"{result.different} differ" if result.different else "none differs"
    typer.echo(f"compared {result.first} to {result.last}, {result.compared} records{accepted}: {differ}")


async def _verify(first: int | None, last: int | None) -> VerifyResult:
    from cdc.log_reader import LogReader
    from cdc.verify import common_range, verify
    from tocsin.cli.progress import progress_bar
    from tocsin.cli.session import command_settings, database, message_bus

    settings = command_settings()
    async with database(settings) as connection, message_bus(settings) as bus:
        reader = LogReader(connection)
        ends = await common_range(bus, settings, reader, first, last)
        with progress_bar("comparing", *ends) as progress:
            return await verify(bus, settings, reader, ends, progress)
