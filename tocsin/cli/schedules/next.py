"""`tocsin next` and `tocsin when`: what a recurrence or a phrase means, without any server.

Guarantee: the answer is what a schedule with the same words would do, because it comes from the same code.
Times are absolute: local time, UTC, and a note wherever the clocks moved or doubled something.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from tocsin.cli.options import Json, Tz, instant_option
from tocsin.cli.output import local_text, print_json, print_table, utc_text

_HORIZON_YEAR = 9999


def next_times(  # noqa: PLR0913 - one option per key an author may write
    cron: Annotated[str | None, typer.Option("--cron", help="Five fields, or @daily and friends.")] = None,
    rrule: Annotated[str | None, typer.Option("--rrule", help="RFC 5545, without DTSTART.")] = None,
    every: Annotated[str | None, typer.Option("--every", help="Interval such as 90s or 1h30m.")] = None,
    tz: Tz = "UTC",
    after: Annotated[
        str | None, typer.Option("--after", help="Instant to start from; now by default.")
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=10_000, help="How many times.")] = 5,
    dst_gap: Annotated[str, typer.Option("--dst-gap", help="forward or skip.")] = "forward",
    dst_fold: Annotated[str, typer.Option("--dst-fold", help="first, second or both.")] = "first",
    dtstart: Annotated[str | None, typer.Option("--dtstart", help="First wall time of an rrule.")] = None,
    as_json: Json = False,
) -> None:
    """Show the next times of a recurrence; `--every` counts from the instant given by `--after`.

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
    found = recurrence.occurrences(start, end, count)
    if as_json:
        print_json(
            [{"local": local_text(one.at, tz), "utc": one.at, "tz": tz, "note": one.note} for one in found]
        )
        return
    if not found:
        typer.echo(f"{recurrence.describe()} does not fire after {utc_text(start)}")
        return
    rows = ((local_text(one.at, tz), utc_text(one.at), one.note or "") for one in found)
    print_table(("LOCAL TIME", "UTC", "NOTE"), rows)
