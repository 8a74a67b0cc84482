"""`tocsin explain`: shows from the records why a schedule fired or not, or why an alarm has its
state.

Reads only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json, Owner, instant_option
from tocsin.cli.output import compact, print_json, printable, title
from tocsin.cli.remote.over_http import over_http
from tocsin.core.errors import Refused

if TYPE_CHECKING:
    from datetime import datetime

    from clock.explain.explanation import Explanation
    from rules.alarms.explain import AlarmExplanation
    from rules.alarms.explain_active_times import ActiveTimesExplanation
    from rules.alarms.explain_references import ReferencesExplanation

_ALARM_ID = re.compile(r"[0-9a-f]{4,8}(-?[0-9a-f]{1,12}){0,4}")
"""The first digits of an ID. It also matches some names of schedules, such as `cafe`."""


def explain(
    name_or_id: Annotated[
        str,
        typer.Argument(
            help="Name of a schedule, of an event_rule over alarms, or of a rule or channel with `active_in`, "
            "or ID of an alarm (its first digits are enough).",
            metavar="SCHEDULE|ALARM|RULE",
        ),
    ],
    owner: Owner = "",
    at: Annotated[
        str | None, typer.Option("--at", help="Instant of an occurrence; the latest one by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Explain a fire, an alarm, what a rule over alarms sees, or active times.

    The explanation names the records that it follows from.

    \b
    Examples:
      tocsin explain daily-digest --at 2026-03-08T07:00Z
      tocsin explain 3f2a91c0
      tocsin explain pump-failing --owner pump-1
      tocsin explain too-few-orders --at 2026-12-25T10:00Z
    """
    if _ALARM_ID.fullmatch(name_or_id) and at is None and not owner:
        alarm = run_command(_explain_alarm(name_or_id))
        if alarm is not None:
            _print_alarm(alarm, as_json)
            return
    references = run_command(_explain_references(name_or_id, owner)) if at is None else None
    if references is not None:
        _print_references(name_or_id, owner, references, as_json)
        return
    instant = None if at is None else instant_option(at, "--at")
    active_times = run_command(_explain_active_times(name_or_id, owner, instant))
    if active_times:
        if as_json:
            print_json([each.facts for each in active_times])
            return
        for each in active_times:
            typer.echo(printable(each.sentence))
        return
    explanation = run_command(_explain_schedule(owner, name_or_id, instant))
    if as_json:
        print_json({"outcome": explanation.outcome, "sentence": explanation.sentence, **explanation.facts})
        return
    typer.echo(printable(f"{title(owner, name_or_id)} {explanation.sentence}"))
    for key, value in explanation.facts.items():
        if value not in (None, ""):
            typer.echo(f"  {key:<14} {printable(compact(value))}")


def _print_alarm(alarm: AlarmExplanation, as_json: bool) -> None:
    if as_json:
        print_json({**alarm.facts, "sentence": alarm.sentence, "history": alarm.history})
        return
    typer.echo(printable(alarm.sentence))
    for line in alarm.history:
        typer.echo(f"  {printable(line)}")


def _print_references(rule: str, owner: str, references: ReferencesExplanation, as_json: bool) -> None:
    if as_json:
        facts = {"rule": rule, "owner": owner, "condition": references.condition}
        print_json({**facts, "refers_to": references.facts})
        return
    typer.echo(printable(f"{title(owner, rule)} needs {references.condition}"))
    for line in references.lines:
        typer.echo(f"  {printable(line)}")


@over_http("records.explain_references")
async def _explain_references(rule: str, owner: str) -> ReferencesExplanation | None:
    """None if a schedule has this name, or if no event_rule over alarms has it."""
    from rules.alarms.explain_references import explain_references, rule_over_alarms
    from timers.schedules import find_schedule
    from tocsin.cli.session import database

    async with database() as connection:
        if await find_schedule(connection, owner, rule) is not None:
            return None
        found = await rule_over_alarms(connection, rule)
        return None if found is None else await explain_references(connection, found, owner)


@over_http("records.explain_active_times")
async def _explain_active_times(
    name: str, owner: str, instant: datetime | None
) -> list[ActiveTimesExplanation]:
    """Empty if a schedule has this name, or if no rule or channel with `active_in` has it."""
    from rules.alarms.explain_active_times import explain_active_times
    from timers.schedules import find_schedule
    from timers.working_set import database_now
    from tocsin.cli.session import database

    async with database() as connection:
        if await find_schedule(connection, owner, name) is not None:
            return []
        return await explain_active_times(connection, name, instant or await database_now(connection))


@over_http("records.explain_alarm")
async def _explain_alarm(alarm_id: str) -> AlarmExplanation | None:
    """None if a schedule has this name, or if no alarm has this ID."""
    from rules.alarms.explain import explain_alarm
    from rules.alarms.queries import find_alarm
    from timers.schedules import find_schedule
    from timers.working_set import database_now
    from tocsin.cli.session import database

    async with database() as connection:
        if await find_schedule(connection, "", alarm_id) is not None:
            return None
        try:
            alarm = await find_alarm(connection, alarm_id)
        except Refused:
            return None
        return await explain_alarm(connection, alarm, await database_now(connection))


@over_http("records.explain_schedule")
async def _explain_schedule(owner: str, schedule: str, instant: datetime | None) -> Explanation:
    from clock.explain.records import explain_schedule
    from timers.working_set import database_now
    from tocsin.cli.session import database

    async with database() as connection:
        return await explain_schedule(connection, owner, schedule, await database_now(connection), instant)
