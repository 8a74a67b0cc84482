"""`tocsin prune`: drop what is older than its retention now, or say what would go and what holds the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import finish
from tocsin.cli.options import Json
from tocsin.cli.output import print_json

if TYPE_CHECKING:
    from clock.retention.plan import PrunePlan
    from clock.retention.prune import Pruned


def prune(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be dropped.")] = False,
    as_json: Json = False,
) -> None:
    """Drop what is older than its retention, and what hung on it; the clock does the same once an hour.

    \b
    Example:
      tocsin prune --dry-run
    """
    planned, counts, done = finish(_prune(dry_run, quiet=as_json))
    if as_json:
        print_json(_facts(planned, counts, done))
        return
    if done is None:
        for one in planned.ranges:
            typer.echo(f"would drop records {one.start} to {one.until - 1} ({_size(one.bytes)})")
        for day in planned.days:
            typer.echo(f"would drop datapoints of {day.day} ({_size(day.bytes)})")
        for table, count in counts.items():
            typer.echo(f"would remove from {table}: {count:,} rows")
    else:
        if done.tables:
            kept = f", {done.events_kept} events kept aside" if done.events_kept else ""
            typer.echo(f"dropped {len(done.tables)} partitions ({_size(done.bytes)}){kept}")
        for table, count in done.rows.items():
            typer.echo(f"removed from {table}: {count:,} rows")
    if not planned.ranges and not planned.days and not (counts if done is None else done.rows):
        typer.echo("nothing is old enough to be dropped")
    for left in (*(done.left if done is not None else ()), *planned.kept):
        typer.echo(f"kept {left.what}: {left.why}")


def _facts(planned: PrunePlan, counts: dict[str, int], done: Pruned | None) -> dict[str, Any]:
    return {
        "ranges": [
            {"from_seq": one.start, "until_seq": one.until - 1, "bytes": one.bytes} for one in planned.ranges
        ],
        "days": [{"day": day.day.isoformat(), "bytes": day.bytes} for day in planned.days],
        "rows": counts if done is None else done.rows,
        "kept": [one._asdict() for one in planned.kept],
        "dropped": None if done is None else done.tables,
        "events_kept": None if done is None else done.events_kept,
        "left": None if done is None else [one._asdict() for one in done.left],
    }


def _size(bytes: int) -> str:
    return f"{bytes / 2**20:.1f} MiB"


async def _prune(dry_run: bool, *, quiet: bool) -> tuple[PrunePlan, dict[str, int], Pruned | None]:
    from clock.retention.prune import count_prunable, read_plan
    from clock.retention.prune import prune as prune_now
    from tocsin.cli.session import command_settings, database

    settings = command_settings()
    async with database() as connection:
        planned = await read_plan(connection, settings)
        if dry_run:
            return planned, await count_prunable(connection, settings, planned), None

        def tell(table: str, rows: int) -> None:
            if not quiet:
                typer.echo(f"{table}: {rows:,} rows" if rows else f"dropped {table}", err=True)

        return planned, {}, await prune_now(connection, settings, tell)
