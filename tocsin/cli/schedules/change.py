"""`tocsin schedule show | pause | resume | run | cancel`.

Guarantees: a change of one schedule is one transaction, with its event in the record log and its
row in the audit; both name the operator. `cancel --all` and `cancel --type` use one transaction per
schedule: an edit of one schedule at the same time does not delay the others, and after an
interruption the same command cancels the rest.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, Protocol
from uuid import UUID

import typer

from tocsin.cli.confirm import Yes, confirm
from tocsin.cli.errors import run_command
from tocsin.cli.options import CreatedBy, IfGeneration, Json, Owner, current_user
from tocsin.cli.output import print_json, printable, title
from tocsin.core.errors import InvalidInput, Refused

if TYPE_CHECKING:
    from timers.schedules import PutResult
    from tocsin.core.audit import Actor
    from tocsin.core.db import Connection

Name = Annotated[str, typer.Argument(help="Name of the schedule.")]
_BATCH = 1000


class ScheduleChange(Protocol):
    async def __call__(
        self, connection: Connection, owner: str, name: str, actor: Actor, *, if_generation: int | None = None
    ) -> PutResult: ...


def pause(
    name: Name,
    owner: Owner = "",
    if_generation: IfGeneration = None,
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Pause a schedule: it does not fire until it is resumed.

    \b
    Example:
      tocsin schedule pause daily-digest
    """
    from clock import schedule_commands

    _change(schedule_commands.pause, owner, name, if_generation, by, as_json)


def resume(
    name: Name,
    owner: Owner = "",
    if_generation: IfGeneration = None,
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Resume a paused schedule.

    It fires at its next time. Times that passed during the pause do not fire.

    \b
    Example:
      tocsin schedule resume daily-digest
    """
    from clock import schedule_commands

    _change(schedule_commands.resume, owner, name, if_generation, by, as_json)


def cancel(  # noqa: PLR0913 - four ways to name what to cancel
    name: Annotated[str | None, typer.Argument(help="Name of the schedule.")] = None,
    owner: Annotated[str | None, typer.Option("--owner", help="Owner of the schedule or schedules.")] = None,
    id: Annotated[UUID | None, typer.Option("--id", help="Id of the schedule, instead of its name.")] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Cancel all schedules of --owner, or all after a question.")
    ] = False,
    type_: Annotated[
        str | None, typer.Option("--type", help="Cancel all schedules with this type of event.")
    ] = None,
    if_generation: IfGeneration = None,
    by: CreatedBy = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Cancel one schedule, all of an owner, all of a type, or all.

    Cancelled schedules stay in `tocsin schedules`, for the audit.

    \b
    Examples:
      tocsin schedule cancel invoice-42 --owner billing
      tocsin schedule cancel --all --owner billing
      tocsin schedule cancel --type payment-reminder
      tocsin schedule cancel --all
    """
    from clock import schedule_commands

    if id is not None:
        if name is not None or all_ or type_ is not None:
            raise InvalidInput("--id names one schedule", remedy="leave out the name, --all and --type")
        owner, name = run_command(_name_of(id))
    if name is not None and not all_ and type_ is None:
        _change(schedule_commands.cancel, owner or "", name, if_generation, by, as_json)
        return
    if name is not None or if_generation is not None:
        raise InvalidInput(
            "--all and --type cancel several schedules", remedy="leave out the name and --if-generation"
        )
    if type_ is None and not all_:
        raise InvalidInput("nothing to cancel", remedy="give a name, --id, --all or --type")
    if type_ is None and owner is None and not yes:
        confirm("cancel all schedules, of all owners and of the rule files?")
    cancelled = run_command(_cancel_many(owner, type_, by or current_user()))
    if as_json:
        print_json({"cancelled": cancelled, "count": len(cancelled)})
        return
    for schedule in cancelled:
        typer.echo(printable(f"cancelled schedule {title(schedule['owner'], schedule['name'])}"))
    typer.echo(f"{len(cancelled)} cancelled")


def run(name: Name, owner: Owner = "", by: CreatedBy = None, as_json: Json = False) -> None:
    """Run a schedule now: its event, with its type, payload and action.

    The action of the schedule and the rules over it run as at a fire. In conditions and templates the
    event has `manual` true. The run is no occurrence: the next fire and the history of fires do not
    change.

    \b
    Example:
      tocsin schedule run daily-digest
    """
    seq = run_command(_run(owner, name, by or current_user()))
    if as_json:
        print_json({"schedule": name, "owner": owner, "seq": seq})
        return
    typer.echo(f"ran schedule {printable(title(owner, name))}, seq {seq}")


def show(name: Name, owner: Owner = "", as_json: Json = False) -> None:
    """Show one schedule with its status, next fire and last result.

    \b
    Example:
      tocsin schedule show invoice-42 --owner billing
    """
    from tocsin.cli.schedules.one_schedule import print_schedule

    print_schedule(run_command(_show(owner, name)), as_json)


def _change(
    change: ScheduleChange,
    owner: str,
    name: str,
    if_generation: int | None,
    by: str | None,
    as_json: bool,
) -> None:
    from tocsin.cli.schedules.one_schedule import print_schedule

    put, row = run_command(_change_one(change, owner, name, if_generation, by or current_user()))
    print_schedule(row, as_json, outcome=put.outcome)


async def _change_one(
    change: ScheduleChange, owner: str, name: str, if_generation: int | None, who: str
) -> tuple[PutResult, dict[str, Any]]:
    from tocsin.cli.session import database

    async with database() as connection:
        put = await _change_now(connection, change, (owner, name), if_generation, who)
        return put, await _find(connection, owner, name)


async def _change_now(
    connection: Connection, change: ScheduleChange, key: tuple[str, str], if_generation: int | None, who: str
) -> PutResult:
    from clock import schedule_commands
    from tocsin.cli.session import command_actor
    from tocsin.policy import Operation

    is_cancel = change is schedule_commands.cancel
    operation = Operation.CANCEL_SCHEDULE if is_cancel else Operation.PAUSE_SCHEDULE
    actor = await command_actor(connection, who, operation, key[0])
    return await change(connection, *key, actor, if_generation=if_generation)


async def _cancel_many(owner: str | None, type_: str | None, who: str) -> list[dict[str, str]]:
    from clock.schedule_commands import cancel as cancel_one
    from timers.schedules import list_schedules
    from tocsin.cli.session import database

    cancelled: list[dict[str, str]] = []
    async with database() as connection:
        # Without those of tocsin itself, such as the ends of silences.
        for status, source in product(("active", "paused"), ("api", "rules")):
            while rows := await list_schedules(
                connection, owner=owner, type=type_, status=status, source=source, limit=_BATCH
            ):
                for row in rows:
                    await _change_now(connection, cancel_one, (row["owner"], row["name"]), None, who)
                    cancelled.append({"owner": row["owner"], "name": row["name"]})
    return cancelled


async def _name_of(id: UUID) -> tuple[str, str]:
    from timers.schedules import find_schedule_by_id
    from tocsin.cli.session import database

    async with database() as connection:
        key = await find_schedule_by_id(connection, id)
    if key is None:
        raise Refused(f"there is no schedule with the id {id}", remedy="`tocsin schedules --json` lists them")
    return key


async def _run(owner: str, name: str, who: str) -> int:
    from clock.schedule_commands import run_now
    from tocsin.cli.session import command_actor, database
    from tocsin.policy import Operation

    async with database() as connection:
        await _find(connection, owner, name)
        return await run_now(
            connection, owner, name, await command_actor(connection, who, Operation.RUN_SCHEDULE, owner)
        )


async def _show(owner: str, name: str) -> dict[str, Any]:
    from tocsin.cli.schedules.last_result import with_last_results
    from tocsin.cli.session import database

    async with database() as connection:
        (row,) = await with_last_results(connection, [await _find(connection, owner, name)])
        return row


async def _find(connection: Connection, owner: str, name: str) -> dict[str, Any]:
    from timers.schedules import find_schedule

    row = await find_schedule(connection, owner, name)
    if row is None:
        of_owner = f" of owner {owner!r}" if owner else ""
        raise Refused(f"there is no schedule {name!r}{of_owner}", remedy="`tocsin schedules` lists them")
    return row
