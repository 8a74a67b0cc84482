"""`tocsin calendar show`: the days of a calendar in a year. Reads only."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli.calendars.files import RuleFiles, calendars_in_force, calendars_of_files
from tocsin.cli.errors import run_command
from tocsin.cli.options import Json
from tocsin.cli.output import print_json, print_table


def show(
    name: Annotated[str, typer.Argument(help="Name of the calendar.")],
    year: Annotated[
        int | None, typer.Option("--year", min=1971, max=2200, help="This year by default.")
    ] = None,
    rules: RuleFiles = None,
    as_json: Json = False,
) -> None:
    """Show the days of a calendar in a year.

    With --rules it needs no server.

    \b
    Example:
      tocsin calendar show business-days --year 2027 --rules examples
    """
    from clock.time_source import wall_now
    from rules.documents.calendar_year import days_of_year
    from rules.documents.ics import date_texts
    from timers.recurrence.day_set import parse_day

    calendars = calendars_of_files(rules) if rules else run_command(calendars_in_force())
    shown = year or wall_now().year
    found, number = days_of_year(calendars, name, shown)
    if as_json:
        print_json({"calendar": name, "year": shown, "days": [str(day) for day in found]})
        return
    rows = []
    for text in date_texts(tuple(found)):
        begin, end = parse_day(text)
        span = "1 day" if begin == end else f"{(end - begin).days + 1} days"
        rows.append((f"{begin:%a} {begin}", "" if begin == end else f"{end:%a} {end}", span))
    if rows:
        print_table(("FROM", "TO", "DAYS"), rows)
    typer.echo(f"{len(found)} of {number} days of {shown} are in calendar {name}")
