"""`tocsin next`: shows the next times of a recurrence. Needs no server.

Guarantee: a schedule with the same recurrence fires at these times, because both use the same code.
A note marks each time that a change of the clocks moved or doubled, or that a calendar moved.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.calendars.files import RuleFiles, calendars_in_force, calendars_of_files
from tocsin.cli.errors import run_command
from tocsin.cli.options import Json, Tz, instant_option
from tocsin.cli.output import local_text, print_json, print_table, utc_text
from tocsin.cli.schedules.recurrence_options import Cron, DstFold, DstGap, Dtstart, Every, Rrule
from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    from timers.recurrence import Recurrence

Row = tuple[datetime, str | None, str | None]
"""Instant, note, and why calendars skip it; None if it fires."""
_HORIZON_YEAR = 9999
_MOST_SKIPPED = 10_000


def next_times(  # noqa: PLR0913 - one option per key of a recurrence
    cron: Cron = None,
    rrule: Rrule = None,
    every: Every = None,
    tz: Tz = "UTC",
    after: Annotated[
        str | None, typer.Option("--after", help="Instant to start from; now by default.")
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=10_000, help="How many times.")] = 5,
    dst_gap: DstGap = "forward",
    dst_fold: DstFold = "first",
    dtstart: Dtstart = None,
    only_in: Annotated[
        list[str] | None, typer.Option("--only-in", help="Calendar; only on its days. Repeatable.")
    ] = None,
    except_: Annotated[
        list[str] | None, typer.Option("--except", help="Calendar; not on its days. Repeatable.")
    ] = None,
    shift: Annotated[
        str | None, typer.Option("--shift", help="Move other times to the next or previous day.")
    ] = None,
    rules: RuleFiles = None,
    as_json: Json = False,
) -> None:
    """Show the next times of a recurrence; needs no server.

    --every counts from the instant that --after names. With calendars, the times that they skip
    are listed with the reason.

    \b
    Example:
      tocsin next --cron "30 2 * * *" --tz America/New_York --after 2026-03-07T00:00Z --count 5
    """
    from clock.time_source import wall_now
    from timers.recurrence import parse

    start = wall_now() if after is None else instant_option(after, "--after")
    recurrence = parse(
        cron=cron,
        rrule=rrule,
        every=every,
        tz=tz,
        dst_gap=dst_gap,
        dst_fold=dst_fold,
        dtstart=dtstart,
        anchor=start,
        days=_days(only_in or [], except_ or [], shift, rules),
    )
    rows = _rows(recurrence, start, count)
    if as_json:
        print_json([_row_json(row, tz, recurrence.days is not None) for row in rows])
    elif rows:
        print_table(("LOCAL TIME", "UTC", "NOTE"), (_row_texts(row, tz) for row in rows))
    else:
        typer.echo(f"{recurrence.describe()} does not fire after {utc_text(start)}")


def _rows(recurrence: Recurrence, start: datetime, count: int) -> list[Row]:
    """The next times, and between them those that calendars skip, in the order of time."""
    from timers.recurrence.skipped import skipped

    end = datetime(_HORIZON_YEAR, 1, 1, tzinfo=start.tzinfo)
    times = recurrence.occurrences(start, end, count)
    rows: list[Row] = [(time.at, time.note, None) for time in times]
    if times and recurrence.days is not None:
        removed = skipped(recurrence, start, times[-1].at, _MOST_SKIPPED)
        rows += [(each.at, None, each.reason) for each in removed]
    return sorted(rows, key=lambda row: row[0])


def _row_texts(row: Row, tz: str) -> tuple[str, str, str]:
    at, note, reason = row
    return local_text(at, tz), utc_text(at), note or (f"skipped: {reason}" if reason else "")


def _row_json(row: Row, tz: str, has_calendars: bool) -> dict[str, object]:
    at, note, reason = row
    fields: dict[str, object] = {"local": local_text(at, tz), "utc": at, "tz": tz, "note": note}
    return {**fields, "skipped": reason} if has_calendars else fields


def _days(
    only_in: list[str], excepted: list[str], shift: str | None, rules: list[Path] | None
) -> dict[str, object] | None:
    """The calendars of the options, from rule files or those in force."""
    if not (only_in or excepted or shift):
        return None
    calendars = calendars_of_files(rules) if rules else run_command(calendars_in_force())
    unknown = sorted({*only_in, *excepted} - calendars.names)
    if unknown:
        known = ", ".join(sorted(calendars.names)) or "there is none"
        raise InvalidInput(f"unknown calendar {unknown[0]!r}", remedy=f"use one of these: {known}")
    return {
        "only_in": {name: calendars.definition(name) for name in only_in},
        "except": {name: calendars.definition(name) for name in excepted},
        "shift": shift,
    }
