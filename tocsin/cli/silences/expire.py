"""`tocsin silence expire`: ends a silence, in one transaction with its event and its audit row."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import CreatedBy, Json, current_user
from tocsin.cli.output import print_json, printable

Row = dict[str, Any]


def expire(
    silence: Annotated[
        str, typer.Argument(help="ID of the silence, or the first four or more of its letters.", metavar="ID")
    ],
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """End a silence now.

    Alarms that it muted and that are still open are notified. If it is a window of a maintenance, the
    next window follows as planned.

    \b
    Example:
      tocsin silence expire 1a2b3c4d
    """
    row, seq = run_command(_expire(silence, by or current_user()))
    if as_json:
        print_json({"silence": row["id"], "seq": seq})
        return
    source = "" if row["source"] == "operator" else f" of {row['source'].replace(':', ' ')}"
    typer.echo(printable(f"ended silence {str(row['id'])[:8]}{source}, seq {seq}"))


async def _expire(silence: str, who: str) -> tuple[Row, int]:
    from rules.suppression.operator import expire_silence
    from rules.suppression.silence_store import find_silence
    from tocsin.cli.session import command_actor, database
    from tocsin.policy import Operation

    async with database() as connection:
        row = await find_silence(connection, silence)
        actor = await command_actor(connection, who, Operation.SILENCE_ALARMS)
        return row, await expire_silence(connection, row, actor)
