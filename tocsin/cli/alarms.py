"""`tocsin alarms`, `ack` and `snooze`: what is wrong now, and that somebody knows.

Guarantee: `alarms` reads only. An acknowledgement or a snooze is one transaction with its event and its audit row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import finish
from tocsin.cli.options import CreatedBy, Json, instant_option, person
from tocsin.cli.output import countdown, print_json, print_table, printable, since_text, utc_text
from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    from datetime import datetime

    from rules.alarms.operator import Acted

AlarmId = Annotated[str, typer.Argument(help="Id of the alarm, or its beginning.", metavar="ID")]


def alarms(
    state: Annotated[str, typer.Option("--state", help="held, pending, open, resolved or all.")] = "held",
    rule: Annotated[str | None, typer.Option("--rule", help="Only of this event_rule.")] = None,
    owner: Annotated[str | None, typer.Option("--owner", help="Only of this owner.")] = None,
    severity: Annotated[
        str | None, typer.Option("--severity", help="Only of this level and above, such as high.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="At most this many.")] = 100,
    as_json: Json = False,
) -> None:
    """List the alarms that are held, the gravest first.

    \b
    Examples:
      tocsin alarms
      tocsin alarms --state resolved --owner plant-7
    """
    now, rows = finish(_alarms(_states(state), rule, owner, severity, limit))
    if as_json:
        print_json(rows)
        return
    if not rows:
        typer.echo("no alarms" if state in ("held", "all") else f"no alarms are {state}")
        return
    print_table(
        ("ID", "SEVERITY", "STATE", "RULE", "OWNER", "SINCE", "SAYS"),
        (
            (
                str(row["id"])[:8],
                row["level"],
                _state_text(row, now),
                row["event_rule"],
                row["owner"],
                since_text(row["since"] - now),
                str(row["payload"].get("message", "")),
            )
            for row in rows
        ),
    )


def ack(
    alarm: AlarmId,
    note: Annotated[str, typer.Option("--note", help="What is known or done about it.")] = "",
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Acknowledge an open alarm: it stays open, and its runbooks stop. Doing it again changes nothing.

    \b
    Example:
      tocsin ack 3f2a91c0 --note "fan is being replaced"
    """
    row, acted = finish(_ack(alarm, note, by or person()))
    if as_json:
        print_json({"alarm": row["id"], "changed": acted.changed, "seq": acted.seq})
        return
    name = f"{str(row['id'])[:8]} ({row['event_rule']} of {row['owner']!r})"
    if acted.changed:
        typer.echo(printable(f"acknowledged alarm {name}, seq {acted.seq}"))
    else:
        typer.echo(
            printable(
                f"alarm {name} was acknowledged by {row['acknowledged_by']} at {utc_text(row['acknowledged_at'])}"
            )
        )


def snooze(
    alarm: AlarmId,
    duration: Annotated[str | None, typer.Argument(help="How long, such as 2h or 30m.")] = None,
    until: Annotated[str | None, typer.Option("--until", help="Until this instant instead.")] = None,
    off: Annotated[bool, typer.Option("--off", help="End the silence now.")] = False,
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Put an open alarm off for a while: it stays open, and its channels are told again at the end.

    A runbook that is under way goes on, and may ask for alarm.snoozed; `tocsin ack` ends it.

    \b
    Examples:
      tocsin snooze 3f2a91c0 2h
      tocsin snooze 3f2a91c0 --off
    """
    if sum((duration is not None, until is not None, off)) != 1:
        raise InvalidInput("give how long to be silent, such as 2h, or --until an instant, or --off")
    row, silent_until, acted = finish(_snooze(alarm, duration, until, by or person()))
    if as_json:
        print_json({"alarm": row["id"], "until": silent_until, "seq": acted.seq})
        return
    name = f"{str(row['id'])[:8]} ({row['event_rule']} of {row['owner']!r})"
    says = f"is silent until {utc_text(silent_until)}" if silent_until else "speaks again"
    typer.echo(printable(f"alarm {name} {says}, seq {acted.seq}"))


def _states(state: str) -> tuple[str, ...]:
    from rules.alarms.queries import HELD, STATES

    if state == "held":
        return HELD
    if state == "all":
        return STATES
    if state not in STATES:
        raise InvalidInput(f"--state {state!r} is unknown", remedy=f"use held, {', '.join(STATES)} or all")
    return (state,)


def _state_text(row: dict[str, Any], now: datetime) -> str:
    marks = []
    if row["acknowledged_at"] is not None and row["state"] == "open":
        marks.append(f"acknowledged by {row['acknowledged_by']}")
    if row["snoozed_until"] is not None and row["snoozed_until"] > now and row["state"] == "open":
        marks.append(f"snoozed for {countdown(row['snoozed_until'] - now).removeprefix('in ')}")
    return f"{row['state']} ({', '.join(marks)})" if marks else str(row["state"])


async def _alarms(
    states: tuple[str, ...], rule: str | None, owner: str | None, severity: str | None, limit: int
) -> tuple[datetime, list[dict[str, Any]]]:
    from rules.alarms.queries import list_alarms
    from schemas.values.severities import level, level_name
    from timers.working_set import database_now
    from tocsin.cli.session import database

    least = 0 if severity is None else level(severity)
    async with database() as connection:
        rows = await list_alarms(
            connection, states=states, rule=rule, owner=owner, severity=least, limit=limit
        )
        return await database_now(connection), [{**row, "level": level_name(row["severity"])} for row in rows]


async def _ack(alarm: str, note: str, who: str) -> tuple[dict[str, Any], Acted]:
    from rules.alarms.operator import acknowledge
    from rules.alarms.queries import find_alarm
    from timers.working_set import database_now
    from tocsin.cli.session import database
    from tocsin.core.audit import Actor

    async with database() as connection:
        row = await find_alarm(connection, alarm)
        acted = await acknowledge(connection, row, Actor(who, "cli", await database_now(connection)), note)
        return await find_alarm(connection, str(row["id"])), acted


async def _snooze(
    alarm: str, duration: str | None, until: str | None, who: str
) -> tuple[dict[str, Any], datetime | None, Acted]:
    from rules.alarms.operator import snooze as snooze_alarm
    from rules.alarms.queries import find_alarm
    from schemas.values.duration import parse_duration
    from timers.working_set import database_now
    from tocsin.cli.session import database
    from tocsin.core.audit import Actor

    async with database() as connection:
        row = await find_alarm(connection, alarm)
        now = await database_now(connection)
        silent_until = None if until is None else instant_option(until, "--until")
        if duration is not None:
            silent_until = now + parse_duration(duration)
        return row, silent_until, await snooze_alarm(connection, row, Actor(who, "cli", now), silent_until)
