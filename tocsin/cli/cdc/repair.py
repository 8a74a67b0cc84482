"""`tocsin cdc adopt` and `tocsin cdc rebuild`: what only a person may decide about log and stream.

Guarantee: both say what they are about to do, in numbers, and do it after a yes: at the prompt or as `--yes`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.errors import finish
from tocsin.cli.options import CreatedBy, Json, person
from tocsin.cli.output import print_json
from tocsin.core.errors import Refused

if TYPE_CHECKING:
    from cdc.adopt import Loss
    from cdc.rebuild import Plan

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


def adopt(yes: Yes = False, by: CreatedBy = None, as_json: Json = False) -> None:
    """Accept what the log has lost: record the gap, and go on behind the stream's end or past the hole.

    \b
    Example:
      tocsin cdc adopt
    """
    loss = finish(_find_loss())
    if loss is None:
        raise Refused("nothing to adopt: the log has everything that the stream has, and no hole")
    typer.echo(_loss_text(loss), err=True)
    _confirm("accept this?", yes)
    moved = finish(_adopt(loss, by or person()))
    if as_json:
        print_json({"from": loss.first, "until": loss.last, "in_stream": loss.in_stream, "moved": moved})
        return
    typer.echo(f"recorded the gap {loss.first} to {loss.last}, with an event and in the audit")
    if loss.to_move is not None:
        typer.echo(f"the log goes on at {loss.last + 1}; {moved} records were moved there")


def rebuild(yes: Yes = False, by: CreatedBy = None, as_json: Json = False) -> None:
    """Remove the stream and make it anew from the log: the same records at the same sequences.

    \b
    Example:
      tocsin cdc rebuild
    """
    plan = finish(_plan())
    typer.echo(_plan_text(plan), err=True)
    _confirm("remove the stream and make it anew?", yes)
    last = finish(_rebuild(plan, by or person()))
    if as_json:
        print_json({"from": plan.first, "until": last, "consumers": plan.consumers})
        return
    typer.echo(f"the stream is made anew from {plan.first} to {last}")


def _confirm(question: str, yes: bool) -> None:
    """On stderr alone, because stdout is the answer; no answer, as from a pipe that ended, is a no."""
    if yes:
        return
    typer.echo(f"{question} [y/N] ", err=True, nl=False)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused("nothing was changed", remedy="answer y, or give --yes")


def _loss_text(loss: Loss) -> str:
    lines = [f"the log has nothing at {loss.first} to {loss.last} ({loss.count} records)"]
    if loss.to_move is not None:
        lines.append("the stream has messages there: consumers have seen them, and they stay")
        lines.append(f"the log will go on at {loss.last + 1}; these sequences become a recorded gap of it")
        if loss.to_move:
            lines.append(
                f"{loss.to_move} records that the log has at {loss.first} and later were never published; "
                f"they are moved {loss.count} later"
            )
        lines.append("what the lost records had done in postgres is lost too, and may be done again")
    elif loss.in_stream:
        lines.append("the stream has them and keeps them; a rebuilt stream will have tombstones there")
    else:
        lines.append("they were never published; tombstones will take their sequences")
    lines.append("if a backup of postgres has them, restore it instead")
    return "\n".join(lines)


def _plan_text(plan: Plan) -> str:
    lines = [f"the log has {plan.first} to {plan.last}; the stream has {plan.messages} messages"]
    if plan.missing:
        lines.append(f"{plan.missing} sequences are recorded gaps; tombstones will take them")
    if plan.consumers:
        lines.append(f"these durable consumers go with the stream: {', '.join(plan.consumers)}")
        lines.append("the workers make theirs again by themselves; others must be made again by their owners")
    return "\n".join(lines)


async def _find_loss() -> Loss | None:
    from cdc.adopt import find_loss
    from cdc.log_reader import LogReader
    from tocsin.cli.session import command_settings, database, message_bus

    settings = command_settings()
    async with database(settings) as connection, message_bus(settings) as bus:
        return await find_loss(bus.jetstream(), settings, LogReader(connection))


async def _adopt(loss: Loss, who: str) -> int:
    from cdc.adopt import adopt
    from cdc.log_reader import LogReader
    from timers.working_set import database_now
    from tocsin.cli.session import command_settings, database
    from tocsin.core.audit import Actor

    settings = command_settings()
    async with database(settings) as connection:
        actor = Actor(who, "cli", await database_now(connection))
        return await adopt(LogReader(connection), settings, loss, actor)


async def _plan() -> Plan:
    from cdc.log_reader import LogReader
    from cdc.rebuild import plan_rebuild
    from tocsin.cli.session import command_settings, database, message_bus

    settings = command_settings()
    async with database(settings) as connection, message_bus(settings) as bus:
        return await plan_rebuild(bus, settings, LogReader(connection))


async def _rebuild(plan: Plan, who: str) -> int:
    from cdc.log_reader import LogReader
    from cdc.rebuild import rebuild
    from timers.working_set import database_now
    from tocsin.cli.rules.progress import progress_bar
    from tocsin.cli.session import command_settings, database, message_bus
    from tocsin.core.audit import Actor

    settings = command_settings()
    async with database(settings) as connection, message_bus(settings) as bus:
        actor = Actor(who, "cli", await database_now(connection))
        with progress_bar("publishing", plan.first, plan.last) as progress:
            return await rebuild(bus, settings, LogReader(connection), actor, progress)
