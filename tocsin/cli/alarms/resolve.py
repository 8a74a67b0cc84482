"""`tocsin resolve`: resolves alarms, each in one transaction with its event and its audit row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.alarms.many import (
    AlarmIds,
    Outcomes,
    Where,
    alarm_title,
    ask_about,
    check_choice,
    choose_alarms,
)
from tocsin.cli.confirm import Yes
from tocsin.cli.errors import run_command
from tocsin.cli.options import CreatedBy, Json, current_user
from tocsin.cli.output import print_json, printable

if TYPE_CHECKING:
    from rules.alarms.operator import OperatorResult

Row = dict[str, Any]


def resolve(
    alarms: AlarmIds = None,
    where: Where = None,
    note: Annotated[str, typer.Option("--note", help="Why it is over.")] = "",
    yes: Yes = False,
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Resolve open alarms by hand, such as those of a host that is gone.

    Their runbooks end. The rule opens another alarm when its condition holds again: after it was clear
    or, over events, with the next event that fires.

    \b
    Examples:
      tocsin resolve 3f2a91c0 --note "the host was decommissioned"
      tocsin resolve --where 'owner == "db-1"'
    """
    ids = alarms or []
    check_choice(ids, where)
    if where is not None and not yes:
        ask_about(run_command(_choose(ids, where)), "resolve them?")
    outcomes = run_command(_resolve(ids, where, note, by or current_user()))
    if where is not None or len(ids) > 1:
        outcomes.print(as_json, _text, _facts)
        return
    if outcomes.failed:
        raise outcomes.failed[0][1]
    ((row, result),) = outcomes.done
    if as_json:
        print_json({"alarm": row["id"], **_facts(result)})
    else:
        typer.echo(printable(_text(row, result)))


def _text(row: Row, result: OperatorResult) -> str:
    from rules.alarms.operator_text import resolved_text

    return resolved_text(alarm_title(row), result.seq)


def _facts(result: OperatorResult) -> Row:
    return {"changed": result.changed, "seq": result.seq}


async def _choose(ids: list[str], where: str | None) -> list[Row]:
    from tocsin.cli.session import database

    async with database() as connection:
        return await choose_alarms(connection, ids, where)


async def _resolve(ids: list[str], where: str | None, note: str, who: str) -> Outcomes:
    from rules.alarms.resolve import resolve as resolve_alarm
    from tocsin.cli.session import command_actor, database
    from tocsin.policy import Operation

    async with database() as connection:

        async def change(row: Row) -> OperatorResult:
            actor = await command_actor(connection, who, Operation.RESOLVE_ALARM, row["owner"])
            return await resolve_alarm(connection, row, actor, note)

        rows = await choose_alarms(connection, ids, where)
        return await Outcomes("resolved").act(rows, change)
