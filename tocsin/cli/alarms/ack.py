"""`tocsin ack`: acknowledges an alarm, in one transaction with its event and its audit row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.alarms.alarms import AlarmId, alarm_title
from tocsin.cli.errors import run_command
from tocsin.cli.options import CreatedBy, Json, current_user
from tocsin.cli.output import print_json, printable, utc_text

if TYPE_CHECKING:
    from rules.alarms.operator import OperatorResult


def ack(
    alarm: AlarmId,
    note: Annotated[str, typer.Option("--note", help="What is known or done about it.")] = "",
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Acknowledge an open alarm.

    The alarm stays open, and its runbooks end. Acknowledging it again changes nothing.

    \b
    Example:
      tocsin ack 3f2a91c0 --note "fan is being replaced"
    """
    row, acted = run_command(_ack(alarm, note, by or current_user()))
    if as_json:
        print_json({"alarm": row["id"], "changed": acted.changed, "seq": acted.seq})
    elif acted.changed:
        typer.echo(printable(f"acknowledged alarm {alarm_title(row)}, seq {acted.seq}"))
    else:
        when = f"by {row['acknowledged_by']} at {utc_text(row['acknowledged_at'])}"
        typer.echo(printable(f"alarm {alarm_title(row)} was already acknowledged {when}"))


async def _ack(alarm: str, note: str, who: str) -> tuple[dict[str, Any], OperatorResult]:
    from rules.alarms.operator import acknowledge
    from rules.alarms.queries import find_alarm
    from tocsin.cli.session import command_actor, database

    async with database() as connection:
        row = await find_alarm(connection, alarm)
        acted = await acknowledge(connection, row, await command_actor(connection, who), note)
        return await find_alarm(connection, str(row["id"])), acted
