"""`tocsin calendar show`: the days of a calendar in a year. Reads only."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Annotated

import typer

from tocsin.cli.calendars.files import RuleFiles, calendars_in_force, calendars_of_files
from tocsin.cli.errors import run_command
from tocsin.cli.options import Json
from tocsin.cli.output import print_json, print_table
from tocsin.core.errors import Refused


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
    from timers.recurrence.day_set import day_set, definition_text, parse_day

    calendars = calendars_of_files(rules) if rules else run_command(calendars_in_force())
    if name not in calendars.names:
        known = ", ".join(sorted(calendars.names)) or "there is none"
        raise Refused(f"no calendar {name!r} is known", remedy=f"use one of these: {known}")
    from rules.documents.ics import date_texts

    shown = year or wall_now().year
    days = day_set(definition_text(calendars.definition(name)))
    first = date(shown, 1, 1)
    of_year = [day for number in range(366) if (day := first + timedelta(days=number)).year == shown]
    found = tuple(day for day in of_year if day in days)
    if as_json:
        print_json({"calendar": name, "year": shown, "days": [str(day) for day in found]})
        return
    rows = []
    for text in date_texts(found):
        begin, end = parse_day(text)
        span = "1 day" if begin == end else f"{(end - begin).days + 1} days"
        rows.append((f"{begin:%a} {begin}", "" if begin == end else f"{end:%a} {end}", span))
    if rows:
        print_table(("FROM", "TO", "DAYS"), rows)
    typer.echo(f"{len(found)} of {len(of_year)} days of {shown} are in calendar {name}")
