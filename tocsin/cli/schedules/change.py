"""`tocsin schedule pause | resume | cancel | run | show`: one schedule by name, or all of an owner or type
cancelled.

Guarantee: an act on one schedule is one transaction, with its event in the log and its row in the audit,
both with who and via what. Cancelling many is one transaction each: a schedule that somebody edits at that
moment cannot hold up the others, and running it again finishes what an interruption left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from tocsin.cli.errors import finish
from tocsin.cli.options import CreatedBy, IfGeneration, Json, Owner, current_user
from tocsin.cli.output import print_json, printable, title
from tocsin.core.errors import InvalidInput, Refused

if TYPE_CHECKING:
    from timers.schedules import Put
    from tocsin.core.audit import Actor
    from tocsin.core.db import Connection

Name = Annotated[str, typer.Argument(help="Name of the schedule.")]
_AT_ONCE = 1000


class Change(Protocol):
    async def __call__(
        self, connection: Connection, owner: str, name: str, actor: Actor, *, if_generation: int | None = None
    ) -> Put: ...


def pause(
    name: Name,
    owner: Owner = "",
    if_generation: IfGeneration = None,
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Pause a schedule: it keeps its row and fires nothing until it is resumed.

    \b
    Example:
      tocsin schedule pause daily-digest
    """
    from clock import schedule_commands as acts

    _change(acts.pause, owner, name, if_generation, by, as_json)


def resume(
    name: Name,
    owner: Owner = "",
    if_generation: IfGeneration = None,
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Resume a paused schedule at its next time; what was paused over is not fired.

    \b
    Example:
      tocsin schedule resume daily-digest
    """
    from clock import schedule_commands as acts

    _change(acts.resume, owner, name, if_generation, by, as_json)


def cancel(
    name: Annotated[str | None, typer.Argument(help="Name of the schedule.")] = None,
    owner: Annotated[str | None, typer.Option("--owner", help="Owner of the schedule, or of all.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="All schedules of --owner.")] = False,
    type_: Annotated[str | None, typer.Option("--type", help="All schedules with this event type.")] = None,
    if_generation: IfGeneration = None,
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Cancel one schedule, all of an owner, or all of a type; their rows stay for the audit.

    \b
    Examples:
      tocsin schedule cancel invoice-42 --owner billing
      tocsin schedule cancel --all --owner billing
      tocsin schedule cancel --type payment-reminder
    """
    from clock import schedule_commands as acts

    if name is not None and not all_ and type_ is None:
        _change(acts.cancel, owner or "", name, if_generation, by, as_json)
        return
    if name is not None or if_generation is not None:
        raise InvalidInput(
            "--all and --type cancel many", remedy="give them without a name and without --if-generation"
        )
    if type_ is None and (not all_ or owner is None):
        raise InvalidInput("nothing to cancel", remedy="give a name, --all with --owner, or --type")
    cancelled = finish(_cancel_many(owner, type_, by or current_user()))
    if as_json:
        print_json({"cancelled": cancelled, "count": len(cancelled)})
        return
    for one in cancelled:
        typer.echo(f"cancelled schedule {title(one['owner'], one['name'])}")
    typer.echo(f"{len(cancelled)} cancelled")


def run(name: Name, owner: Owner = "", by: CreatedBy = None, as_json: Json = False) -> None:
    """Run a schedule now: its event, with its payload and action. Its next fire stays where it is.

    \b
    Example:
      tocsin schedule run daily-digest
    """
    seq = finish(_run(owner, name, by or current_user()))
    if as_json:
        print_json({"schedule": name, "owner": owner, "type": "schedule-triggered", "seq": seq})
        return
    typer.echo(f"ran schedule {printable(title(owner, name))}: schedule-triggered, seq {seq}")


def show(name: Name, owner: Owner = "", as_json: Json = False) -> None:
    """Show one schedule with its status and next fire.

    \b
    Example:
      tocsin schedule show invoice-42 --owner billing
    """
    from tocsin.cli.schedules.one_schedule import print_schedule

    print_schedule(finish(_get(owner, name)), as_json)


def _change(
    change: Change, owner: str, name: str, if_generation: int | None, by: str | None, as_json: bool
) -> None:
    from tocsin.cli.schedules.one_schedule import print_schedule

    put, row = finish(_change_one(change, owner, name, if_generation, by or current_user()))
    print_schedule(row, as_json, outcome=put.outcome)


async def _change_one(
    change: Change, owner: str, name: str, if_generation: int | None, who: str
) -> tuple[Put, dict[str, Any]]:
    from tocsin.cli.session import database

    async with database() as connection:
        put = await _act(connection, change, (owner, name), if_generation, who)
        return put, await _found(connection, owner, name)


async def _act(
    connection: Connection, change: Change, key: tuple[str, str], if_generation: int | None, who: str
) -> Put:
    from tocsin.cli.session import command_actor

    actor = await command_actor(connection, who)
    return await change(connection, *key, actor, if_generation=if_generation)


async def _cancel_many(owner: str | None, type_: str | None, who: str) -> list[dict[str, str]]:
    from clock.schedule_commands import cancel as cancel_one
    from timers.schedules import list_schedules
    from tocsin.cli.session import database

    cancelled: list[dict[str, str]] = []
    async with database() as connection:
        for status in ("active", "paused"):
            while rows := await list_schedules(
                connection, owner=owner, type=type_, status=status, limit=_AT_ONCE
            ):
                for row in rows:
                    await _act(connection, cancel_one, (row["owner"], row["name"]), None, who)
                    cancelled.append({"owner": row["owner"], "name": row["name"]})
    return cancelled


async def _run(owner: str, name: str, who: str) -> int:
    from clock.schedule_commands import run_now
    from tocsin.cli.session import command_actor, database

    async with database() as connection:
        await _found(connection, owner, name)
        return await run_now(connection, owner, name, await command_actor(connection, who))


async def _get(owner: str, name: str) -> dict[str, Any]:
    from tocsin.cli.schedules.last_result import with_results
    from tocsin.cli.session import database

    async with database() as connection:
        (row,) = await with_results(connection, [await _found(connection, owner, name)])
        return row


async def _found(connection: Connection, owner: str, name: str) -> dict[str, Any]:
    from timers.schedules import find_schedule

    row = await find_schedule(connection, owner, name)
    if row is None:
        of_owner = f" of owner {owner!r}" if owner else ""
        raise Refused(f"there is no schedule {name!r}{of_owner}", remedy="`tocsin schedules` lists them")
    return row
