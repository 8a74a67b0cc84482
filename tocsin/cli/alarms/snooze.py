"""`tocsin snooze`: snoozes alarms, each in one transaction with its event and its audit row."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.alarms.many import (
    Outcomes,
    Where,
    alarm_title,
    ask_about,
    check_choice,
    choose_alarms,
    future_instant,
)
from tocsin.cli.confirm import Yes
from tocsin.cli.errors import run_command
from tocsin.cli.options import CreatedBy, Json, Tz, current_user
from tocsin.cli.output import print_json, printable
from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    from datetime import datetime

    from rules.alarms.operator import OperatorResult

Row = dict[str, Any]


def snooze(
    alarms: Annotated[
        list[str] | None,
        typer.Argument(
            help="IDs of alarms, and then how long, such as 2h or 30m.", metavar="[ID]... [DURATION]"
        ),
    ] = None,
    where: Where = None,
    until: Annotated[
        str | None, typer.Option("--until", help='Until this instant or phrase, such as "tomorrow at 9am".')
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="End the snooze now.")] = False,
    tz: Tz = "UTC",
    yes: Yes = False,
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Hold the notifications and runs of open alarms for a time.

    The alarms stay open. Notifications and steps that are due meanwhile are held, and performed when
    the snooze ends, if the alarm is still open. `tocsin silence add` also covers alarms to come.

    \b
    Examples:
      tocsin snooze 3f2a91c0 2h
      tocsin snooze 3f2a91c0 --until "tomorrow at 9am" --tz Europe/London
      tocsin snooze 2h --where 'labels.site == "ams"'
      tocsin snooze 3f2a91c0 --off
    """
    ids, duration = _split(alarms or [], until is not None or off)
    if sum((duration is not None, until is not None, off)) != 1:
        raise InvalidInput(
            "a snooze needs exactly one end",
            remedy="give a duration such as 2h, --until an instant, or --off",
        )
    check_choice(ids, where)
    if where is not None and not yes:
        question = "end their snoozes?" if off else "snooze them?"
        ask_about(run_command(_choose(ids, where)), question)
    outcomes = run_command(_snooze((ids, where), duration, until, tz, by or current_user()))
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


def _split(words: list[str], has_end: bool) -> tuple[list[str], str | None]:
    """The ids, and the duration behind them. A single word that is no duration is an id."""
    from schemas.values.duration import parse_duration

    if not words:
        return [], None
    *ids, last = words
    with suppress(InvalidInput, OverflowError):
        parse_duration(last)
        return ids, last
    # The second of two words was a duration that cannot be read.
    if ids and not has_end and not _is_id(last):
        return ids, last
    return words, None


def _is_id(word: str) -> bool:
    from tocsin.core.id_prefix import IdPrefix

    try:
        IdPrefix(word, "alarm", "tocsin alarms").bounds()
    except InvalidInput:
        return False
    return True


def _text(row: Row, result: tuple[datetime | None, OperatorResult]) -> str:
    from rules.alarms.operator_text import snoozed_text

    ends_at, acted = result
    return snoozed_text(alarm_title(row), acted.seq, ends_at)


def _facts(result: tuple[datetime | None, OperatorResult]) -> Row:
    ends_at, acted = result
    return {"until": ends_at, "seq": acted.seq}


async def _choose(ids: list[str], where: str | None) -> list[Row]:
    from tocsin.cli.session import database

    async with database() as connection:
        return await choose_alarms(connection, ids, where)


async def _snooze(
    choice: tuple[list[str], str | None], duration: str | None, until: str | None, tz: str, who: str
) -> Outcomes:
    from rules.alarms.operator import snooze as snooze_alarm
    from schemas.values.duration import parse_duration
    from tocsin.cli.session import command_actor, database
    from tocsin.core.audit import acting
    from tocsin.policy import Operation

    async with database() as connection:
        rows = await choose_alarms(connection, *choice)
        now = (await acting(connection, who, "cli")).now
        ends_at = None if until is None else future_instant(until, tz, now)
        if duration is not None:
            ends_at = now + parse_duration(duration)

        async def change(row: Row) -> tuple[datetime | None, OperatorResult]:
            actor = await command_actor(connection, who, Operation.SNOOZE_ALARM, row["owner"])
            return ends_at, await snooze_alarm(connection, row, actor, ends_at)

        return await Outcomes("snoozed" if ends_at else "unsnoozed").act(rows, change)
