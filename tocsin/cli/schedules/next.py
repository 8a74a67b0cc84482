"""`tocsin next`: shows the next times of a recurrence. Needs no server.

Guarantee: a schedule with the same recurrence fires at these times, because both use the same code.
A note marks each time that a change of the clocks moved or doubled.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from tocsin.cli.options import Json, Tz, instant_option
from tocsin.cli.output import local_text, print_json, print_table, utc_text
from tocsin.cli.schedules.recurrence_options import Cron, DstFold, DstGap, Dtstart, Every, Rrule

_HORIZON_YEAR = 9999


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
    as_json: Json = False,
) -> None:
    """Show the next times of a recurrence; needs no server.

    --every counts from the instant that --after names.

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
    )
    end = datetime(_HORIZON_YEAR, 1, 1, tzinfo=start.tzinfo)
    times = recurrence.occurrences(start, end, count)
    if as_json:
        print_json(
            [
                {"local": local_text(time.at, tz), "utc": time.at, "tz": tz, "note": time.note}
                for time in times
            ]
        )
        return
    if not times:
        typer.echo(f"{recurrence.describe()} does not fire after {utc_text(start)}")
        return
    rows = ((local_text(time.at, tz), utc_text(time.at), time.note or "") for time in times)
    print_table(("LOCAL TIME", "UTC", "NOTE"), rows)
