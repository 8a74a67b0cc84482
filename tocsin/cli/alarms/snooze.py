"""`tocsin snooze`: defers an alarm, in one transaction with its event and its audit row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.alarms.alarms import AlarmId, alarm_title
from tocsin.cli.errors import run_command
from tocsin.cli.options import CreatedBy, Json, current_user, instant_option
from tocsin.cli.output import print_json, printable, utc_text
from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    from datetime import datetime

    from rules.alarms.operator import OperatorResult


def snooze(
    alarm: AlarmId,
    duration: Annotated[str | None, typer.Argument(help="How long, such as 2h or 30m.")] = None,
    until: Annotated[
        str | None, typer.Option("--until", help="Until this instant, such as 2026-03-07T00:00Z.")
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="End the snooze now.")] = False,
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Defer an open alarm for a time.

    The alarm stays open, and its channels are notified again when the snooze ends. A runbook that
    has started continues; its steps can read alarm.snoozed. `tocsin ack` ends it.

    \b
    Examples:
      tocsin snooze 3f2a91c0 2h
      tocsin snooze 3f2a91c0 --until 2026-03-07T06:00Z
      tocsin snooze 3f2a91c0 --off
    """
    if sum((duration is not None, until is not None, off)) != 1:
        raise InvalidInput(
            "a snooze needs exactly one end",
            remedy="give a duration such as 2h, --until an instant, or --off",
        )
    row, ends_at, acted = run_command(_snooze(alarm, duration, until, by or current_user()))
    if as_json:
        print_json({"alarm": row["id"], "until": ends_at, "seq": acted.seq})
        return
    state = f"is snoozed until {utc_text(ends_at)}" if ends_at else "is no longer snoozed"
    typer.echo(printable(f"alarm {alarm_title(row)} {state}, seq {acted.seq}"))


async def _snooze(
    alarm: str, duration: str | None, until: str | None, who: str
) -> tuple[dict[str, Any], datetime | None, OperatorResult]:
    from rules.alarms.operator import snooze as snooze_alarm
    from rules.alarms.queries import find_alarm
    from schemas.values.duration import parse_duration
    from tocsin.cli.session import command_actor, database

    async with database() as connection:
        row = await find_alarm(connection, alarm)
        actor = await command_actor(connection, who)
        ends_at = None if until is None else instant_option(until, "--until")
        if duration is not None:
            ends_at = actor.now + parse_duration(duration)
        return row, ends_at, await snooze_alarm(connection, row, actor, ends_at)
