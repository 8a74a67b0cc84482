"""`tocsin export`: writes a recording, which `tocsin backtest` reads without a database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json, check_output, instant_or_ago
from tocsin.cli.output import print_json, printable, utc_text

if TYPE_CHECKING:
    from datetime import datetime

Since = Annotated[str, typer.Option("--since", help="Start: a duration ago, such as 30d, or an instant.")]
Until = Annotated[
    str | None, typer.Option("--until", help="End: a duration ago, or an instant; now by default.")
]


def export(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write; Parquet if its name ends with .parquet.")
    ] = Path("recording.ndjson.gz"),
    since: Since = "30d",
    until: Until = None,
    as_json: Json = False,
) -> None:
    """Write a recording to a file, for backtests elsewhere.

    A recording has the datapoints, events, operator actions and rule versions of a window.

    \b
    Example:
      tocsin export --since 7d -o recording.ndjson.gz
    """
    check_output(output, "--output")
    counts, begin, end = run_command(_export(output, since, until))
    if as_json:
        print_json({"file": str(output), "since": begin, "until": end, **counts})
        return
    counts_text = ", ".join(f"{count:,} {noun}" for noun, count in counts.items())
    typer.echo(f"{output}: {counts_text}, {utc_text(begin)} to {utc_text(end)}")


async def _export(output: Path, since: str, until: str | None) -> tuple[dict[str, int], datetime, datetime]:
    from rules.replay.backtest.recording.database import open_database_recording
    from rules.replay.backtest.recording.parquet import write_parquet
    from rules.replay.backtest.recording.recording import write_recording
    from tocsin.cli.progress import fraction_bar
    from tocsin.cli.session import command_settings

    settings = command_settings()
    begin, end = await recording_window(since, until)
    async with open_database_recording(settings, begin, end) as source:
        with fraction_bar("exporting") as report:
            write = write_parquet if output.suffix == ".parquet" else write_recording
            counts = await write(source, output, report)
    return counts, begin, end


async def recording_window(since: str, until: str | None) -> tuple[datetime, datetime]:
    """Start and end of a recording.

    Warns if the window starts before the oldest kept data, because alarms that retention has removed
    look as if they had never opened, and names the owners whose data was erased since its start.
    """
    from rules.replay.backtest.recording.database import complete_since, erased_since
    from timers.working_set import database_now
    from tocsin.cli.session import database
    from tocsin.core.errors import InvalidInput

    async with database() as connection:
        now = await database_now(connection)
        oldest_complete = await complete_since(connection)
        erased = await erased_since(connection)
    end = now if until is None else instant_or_ago(until, "--until", now)
    begin = instant_or_ago(since, "--since", now)
    if begin >= end:
        raise InvalidInput(
            f"--since {since} is not before --until {until or 'now'}", remedy="choose an earlier --since"
        )
    forgotten = sorted({owner for owner, erased_at in erased if erased_at >= begin})
    if forgotten:
        typer.echo(printable(f"left out, because their data was erased: {', '.join(forgotten)}"), err=True)
    if oldest_complete is not None and begin < oldest_complete:
        typer.echo(
            f"retention has removed data from before {utc_text(oldest_complete)}, "
            "so alarms of that time may be missing: choose a later --since",
            err=True,
        )
    return begin, end
