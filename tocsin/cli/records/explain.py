"""`tocsin explain`: why a schedule did or did not fire, or an alarm is as it is, from the records."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.errors import finish
from tocsin.cli.options import Json, Owner, instant_option
from tocsin.cli.output import compact, print_json, printable, title
from tocsin.core.errors import Refused

if TYPE_CHECKING:
    from datetime import datetime

    from clock.explain.explanation import Explanation
    from rules.alarms.explain import Explained

_ALARM_ID = re.compile(r"[0-9a-f]{4,8}(-?[0-9a-f]{1,12}){0,4}")


def explain(
    schedule: Annotated[
        str, typer.Argument(help="Name of a schedule, or id of an alarm.", metavar="SCHEDULE|ALARM")
    ],
    owner: Owner = "",
    at: Annotated[
        str | None, typer.Option("--at", help="The instant in question; the latest occurrence by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say why a schedule did or did not fire, or why an alarm is in its state, citing the records.

    \b
    Examples:
      tocsin explain daily-digest --at 2026-03-08T07:00Z
      tocsin explain 3f2a91c0
    """
    if _ALARM_ID.fullmatch(schedule) and at is None and not owner:
        told = finish(_explain_alarm(schedule))
        if told is not None:
            _print_alarm(told, as_json)
            return
    asked = None if at is None else instant_option(at, "--at")
    verdict = finish(_explain(owner, schedule, asked))
    if as_json:
        print_json({"outcome": verdict.outcome, "sentence": verdict.sentence, **verdict.facts})
        return
    typer.echo(printable(f"{title(owner, schedule)} {verdict.sentence}"))
    for key, value in verdict.facts.items():
        if value not in (None, ""):
            typer.echo(f"  {key:<14} {printable(compact(value))}")


def _print_alarm(told: Explained, as_json: bool) -> None:
    if as_json:
        print_json({**told.facts, "sentence": told.sentence, "history": told.history})
        return
    typer.echo(printable(told.sentence))
    for line in told.history:
        typer.echo(f"  {printable(line)}")


async def _explain_alarm(written: str) -> Explained | None:
    """None if no alarm has this id: it may be the name of a schedule."""
    from rules.alarms.explain import explain_alarm
    from rules.alarms.queries import find_alarm
    from timers.schedules import find_schedule
    from timers.working_set import database_now
    from tocsin.cli.session import database

    async with database() as connection:
        if await find_schedule(connection, "", written) is not None:
            return None
        try:
            alarm = await find_alarm(connection, written)
        except Refused:
            return None
        return await explain_alarm(connection, alarm, await database_now(connection))


async def _explain(owner: str, schedule: str, asked: datetime | None) -> Explanation:
    from clock.explain.records import explain_schedule
    from timers.working_set import database_now
    from tocsin.cli.session import database

    async with database() as connection:
        return await explain_schedule(connection, owner, schedule, await database_now(connection), asked)
