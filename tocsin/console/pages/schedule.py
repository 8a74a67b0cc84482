"""`/schedules/ID`: when does it fire, and why not? Pause, resume, run now and cancel it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from clock import schedule_commands
from clock.explain.recent import recent_outcomes
from clock.explain.records import explain_schedule
from timers.coming_fires import coming_fires
from timers.recurrence import parse_spec
from timers.recurrence.zones import zone
from tocsin.api.v1.schedules import check_generation, find_row
from tocsin.console.commands import command_line
from tocsin.console.filters import name_of
from tocsin.console.form import read_form
from tocsin.console.page import console_page
from tocsin.console.pages.schedules import recurrence_words, strip
from tocsin.console.visit import Visit
from tocsin.core.errors import TocsinError
from tocsin.pictures.year import YearDay, year_calendar
from tocsin.policy import Operation

_SHOWN = 60
_UPCOMING = 12
_MOST_OF_YEAR = 4_000
_DAY = timedelta(days=1)


async def show_schedule(visit: Visit) -> Response:
    row = await find_row(visit.connection, visit.access, visit.path_id("schedule"))
    tz = str(row["recurrence"].get("tz") or "UTC")
    outcomes = (await recent_outcomes(visit.connection, [row], visit.now, _SHOWN))[row["id"]]
    explained = await explain_schedule(visit.connection, row["owner"], row["name"], visit.now)
    year, is_cut = _year(row, tz, visit.now)
    facts = {
        "row": row,
        "tz": tz,
        "words": recurrence_words(row),
        "strip": strip(outcomes, tz, row["name"]) if outcomes else None,
        "missed": [each for each in reversed(outcomes) if each.kind != "fired"][:20],
        "explained": explained,
        "upcoming": coming_fires([row], _UPCOMING),
        "year": year,
        "is_cut": is_cut,
        "commands": {verb: _command(verb, row) for verb in ("pause", "resume", "run", "cancel")},
        "explain_command": command_line("explain", row["name"], *_of(row)),
    }
    return visit.page("pages/schedule.html", facts)


def _year(row: dict[str, Any], tz: str, now: datetime) -> tuple[Any, bool]:
    """The days of this year on which it fires, and whether there are more fires than are counted."""
    at_home = zone(tz)
    today = now.astimezone(at_home).date()
    first = datetime(today.year, 1, 1, tzinfo=at_home).astimezone(UTC)
    last = datetime(today.year + 1, 1, 1, tzinfo=at_home).astimezone(UTC)
    fires: dict[date, int] = {}
    notes: dict[date, str] = {}
    found = list(islice(_instants(row, first, last), _MOST_OF_YEAR))
    for at, note in found:
        day = at.astimezone(at_home).date()
        fires[day] = fires.get(day, 0) + 1
        if note:
            notes[day] = note
    days = {day: YearDay(fires=number, dst=notes.get(day, "")) for day, number in fires.items()}
    return year_calendar(today.year, days, title=row["name"], today=today), len(found) == _MOST_OF_YEAR


def _instants(row: dict[str, Any], after: datetime, until: datetime) -> Any:
    try:
        recurrence = parse_spec(row["recurrence"])
    except TocsinError:
        return
    at = after
    while (occurrence := recurrence.occurrence_after(at)) is not None and occurrence.at < until:
        yield occurrence.at, occurrence.note
        at = occurrence.at


def _of(row: dict[str, Any]) -> tuple[str, ...]:
    return ("--owner", row["owner"]) if row["owner"] else ()


def _command(verb: str, row: dict[str, Any]) -> str:
    return command_line("schedule", verb, row["name"], *_of(row))


def _change(
    verb: str, participle: str, command: schedule_commands.ScheduleCommand
) -> Callable[[Visit], Awaitable[Response]]:
    async def screen(visit: Visit) -> Response:
        form = await read_form(visit.request)
        row = await find_row(visit.connection, visit.access, visit.path_id("schedule"))
        visit.access.require(row["owner"], "schedule of owner")
        generation = form.number("generation")
        if generation is not None:
            await check_generation(visit.connection, row, f'"{generation}"')
        actor = await visit.access.actor(visit.connection)
        put = await command(visit.connection, row["owner"], row["name"], actor, if_generation=generation)
        name = name_of(row["owner"], row["name"])
        text = (
            f"{participle} schedule {name}"
            if put.outcome != "unchanged"
            else f"schedule {name} was already {participle}"
        )
        return visit.done(f"/schedules/{row['id']}", text, command=_command(verb, row))

    return screen


async def run_now(visit: Visit) -> Response:
    row = await find_row(visit.connection, visit.access, visit.path_id("schedule"))
    visit.access.require(row["owner"], "schedule of owner")
    actor = await visit.access.actor(visit.connection)
    seq = await schedule_commands.run_now(visit.connection, row["owner"], row["name"], actor)
    text = f"ran schedule {name_of(row['owner'], row['name'])} now, seq {seq}; its times do not change"
    return visit.done(f"/schedules/{row['id']}", text, command=_command("run", row))


_CHANGES = (
    ("pause", "paused", schedule_commands.pause, Operation.PAUSE_SCHEDULE),
    ("resume", "resumed", schedule_commands.resume, Operation.PAUSE_SCHEDULE),
    ("cancel", "cancelled", schedule_commands.cancel, Operation.CANCEL_SCHEDULE),
)
ROUTES = (
    Route("/schedules/{id}", console_page(Operation.VIEW_SCHEDULES, show_schedule), methods=["GET"]),
    Route("/schedules/{id}/run", console_page(Operation.RUN_SCHEDULE, run_now), methods=["POST"]),
    *(
        Route(
            f"/schedules/{{id}}/{verb}",
            console_page(operation, _change(verb, participle, command)),
            methods=["POST"],
        )
        for verb, participle, command, operation in _CHANGES
    ),
)
