"""`tocsin cdc adopt`: accepts records that the record log has lost.

Guarantee: it prints how many records are affected, and changes nothing until the operator confirms,
at the prompt or with `--yes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from tocsin.cli.confirm import Yes, confirm
from tocsin.cli.errors import run_command
from tocsin.cli.options import CreatedBy, Json, current_user
from tocsin.cli.output import print_json
from tocsin.core.errors import Refused

if TYPE_CHECKING:
    from cdc.adopt import Loss


def adopt(yes: Yes = False, by: CreatedBy = None, as_json: Json = False) -> None:
    """Accept records that the record log has lost.

    The lost range is recorded as a gap. The log then continues after the end of the stream, and the
    publisher after the hole.

    \b
    Example:
      tocsin cdc adopt
    """
    loss = run_command(_find_loss())
    if loss is None:
        raise Refused("nothing to adopt: the log has every record of the stream, and no hole")
    typer.echo(_loss_text(loss), err=True)
    if not yes:
        confirm("accept this loss?")
    moved = run_command(_adopt(loss, by or current_user()))
    if as_json:
        print_json({"from": loss.first, "until": loss.last, "in_stream": loss.in_stream, "moved": moved})
        return
    typer.echo(f"recorded the gap {loss.first} to {loss.last}, as an event and in the audit")
    if loss.is_inside:
        typer.echo(f"{moved} records were moved to the end of the log")
    elif loss.stream_differs:
        typer.echo(f"the log continues at {loss.last + 1}; {moved} records were moved there")


def _loss_text(loss: Loss) -> str:
    lines = [f"the log has no record at {loss.first} to {loss.last} ({loss.count} records)"]
    if loss.to_move:
        lines = [f"the stream has other records than the log at {loss.first} to {loss.last}"]
    if loss.is_inside:
        lines.append("log and stream agree behind them; what the stream has there stays")
        lines.append(
            f"{loss.to_move} records of the log were never published; they move to its end, and these "
            "sequences become a recorded gap"
        )
    elif loss.stream_differs:
        lines.append(
            "the stream has messages there: consumers may have read these messages; they stay in the stream"
        )
        lines.append(f"the log will continue at {loss.last + 1}; these sequences become a recorded gap")
        if loss.to_move:
            lines.append(
                f"{loss.to_move} records of the log from {loss.first} on were never published; "
                f"their sequences will be higher by {loss.count}"
            )
        lines.append("the effects of the lost records in postgres are lost too, and may happen again")
    elif loss.in_stream:
        lines.append("the stream has them and keeps them; a rebuilt stream will have tombstones there")
    else:
        lines.append("they were never published; tombstones will take their sequences")
    lines.append("if a backup of postgres has them, restore it instead")
    return "\n".join(lines)


async def _find_loss() -> Loss | None:
    from cdc.adopt import find_loss
    from cdc.log_reader import LogReader
    from tocsin.cli.session import command_settings, database, message_bus

    settings = command_settings()
    async with database(settings) as connection, message_bus(settings) as bus:
        return await find_loss(bus.jetstream(), settings, LogReader(connection))


async def _adopt(loss: Loss, who: str) -> int:
    from cdc.adopt import adopt as adopt_loss
    from cdc.log_reader import LogReader
    from tocsin.cli.session import command_actor, command_settings, database
    from tocsin.policy import Operation

    settings = command_settings()
    async with database(settings) as connection:
        actor = await command_actor(connection, who, Operation.REPAIR_LOG)
        return await adopt_loss(LogReader(connection), settings, loss, actor)
