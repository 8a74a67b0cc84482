"""`tocsin ack`: acknowledges alarms, each in one transaction with its event and its audit row."""

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


def ack(
    alarms: AlarmIds = None,
    where: Where = None,
    note: Annotated[str, typer.Option("--note", help="What is known or done about it.")] = "",
    yes: Yes = False,
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Acknowledge open alarms.

    They stay open, and their runbooks end. Acknowledging one again changes nothing.

    \b
    Examples:
      tocsin ack 3f2a91c0 --note "fan is being replaced"
      tocsin ack --where 'labels.site == "ams"'
    """
    ids = alarms or []
    check_choice(ids, where)
    if where is not None and not yes:
        ask_about(run_command(_choose(ids, where)), "acknowledge them?")
    outcomes = run_command(_ack(ids, where, note, by or current_user()))
    if where is not None or len(ids) > 1:
        outcomes.print(as_json, _text, _facts)
        return
    if outcomes.failed:
        raise outcomes.failed[0][1]
    ((row, (_, acted)),) = outcomes.done
    if as_json:
        print_json({"alarm": row["id"], **_facts((row, acted))})
    else:
        typer.echo(printable(_text(*outcomes.done[0])))


def _text(row: Row, result: tuple[Row, OperatorResult]) -> str:
    from rules.alarms.operator_text import acknowledged_text

    after, acted = result
    by, at = after["acknowledged_by"], after["acknowledged_at"]
    return acknowledged_text(alarm_title(row), acted.seq if acted.changed else None, by, at)


def _facts(result: tuple[Row, OperatorResult]) -> Row:
    _, acted = result
    return {"changed": acted.changed, "seq": acted.seq}


async def _choose(ids: list[str], where: str | None) -> list[Row]:
    from tocsin.cli.session import database

    async with database() as connection:
        return await choose_alarms(connection, ids, where)


async def _ack(ids: list[str], where: str | None, note: str, who: str) -> Outcomes:
    from rules.alarms.operator import acknowledge
    from rules.alarms.queries import find_alarm
    from tocsin.cli.session import command_actor, database
    from tocsin.policy import Operation

    async with database() as connection:

        async def change(row: Row) -> tuple[Row, OperatorResult]:
            actor = await command_actor(connection, who, Operation.ACKNOWLEDGE_ALARM, row["owner"])
            acted = await acknowledge(connection, row, actor, note)
            return await find_alarm(connection, str(row["id"])), acted

        rows = await choose_alarms(connection, ids, where)
        return await Outcomes("acknowledged").act(rows, change)
