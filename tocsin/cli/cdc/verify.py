"""`tocsin cdc verify`: every record of a range, log against stream."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.errors import finish
from tocsin.cli.options import Json
from tocsin.cli.output import print_json, printable

if TYPE_CHECKING:
    from cdc.verify import Verified


def verify(
    first: Annotated[
        int | None, typer.Option("--from", min=1, help="First seq; the first that both have by default.")
    ] = None,
    last: Annotated[
        int | None, typer.Option("--until", min=1, help="Last seq; the last that both have by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare ids, order, subjects and bodies of the log and the stream; exit with 1 if anything differs.

    \b
    Example:
      tocsin cdc verify --from 100000 --until 200000
    """
    found = finish(_verify(first, last))
    if as_json:
        print_json(asdict(found))
    else:
        _print(found)
    if found.different:
        raise typer.Exit(1)


def _print(found: Verified) -> None:
    if found.last < found.first:
        typer.echo("nothing to compare: log and stream have nothing in common yet")
        return
    for one in found.differences:
        typer.echo(f"{one.seq}: {printable(one.what)}")
    if found.different > len(found.differences):
        typer.echo(f"and {found.different - len(found.differences)} more")
    accepted = f", {found.accepted} in recorded gaps" if found.accepted else ""
    differ = f"{found.different} differ" if found.different else "none differs"
    typer.echo(f"compared {found.first} to {found.last}, {found.compared} records{accepted}: {differ}")


async def _verify(first: int | None, last: int | None) -> Verified:
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
