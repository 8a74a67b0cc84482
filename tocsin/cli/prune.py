"""`tocsin prune`: removes data that is older than its retention, or lists it with `--dry-run`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json
from tocsin.cli.output import print_json

if TYPE_CHECKING:
    from clock.retention.plan import PrunePlan
    from clock.retention.prune import Pruned


def prune(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would be removed.")] = False,
    as_json: Json = False,
) -> None:
    """Remove data that is older than its retention.

    The leading clock does the same once an hour.

    \b
    Example:
      tocsin prune --dry-run
    """
    planned, counts, done = run_command(_prune(dry_run, quiet=as_json))
    if as_json:
        print_json(_prune_json(planned, counts, done))
        return
    if done is None:
        for seqs in planned.ranges:
            typer.echo(f"would drop records {seqs.start} to {seqs.until - 1} ({_size_text(seqs.bytes)})")
        for day in planned.days:
            typer.echo(f"would drop datapoints of {day.day} ({_size_text(day.bytes)})")
        for table, count in counts.items():
            typer.echo(f"would remove from {table}: {count:,} rows")
    else:
        if done.tables:
            kept = f", {done.events_kept} events kept" if done.events_kept else ""
            typer.echo(f"dropped {len(done.tables)} partitions ({_size_text(done.bytes)}){kept}")
        for table, count in done.rows.items():
            typer.echo(f"removed from {table}: {count:,} rows")
    if not planned.ranges and not planned.days and not (counts if done is None else done.rows):
        typer.echo("nothing is older than its retention")
    for left in (*(done.left if done is not None else ()), *planned.kept):
        typer.echo(f"kept {left.what}: {left.why}")


def _prune_json(planned: PrunePlan, counts: dict[str, int], done: Pruned | None) -> dict[str, Any]:
    return {
        "ranges": [
            {"from_seq": seqs.start, "until_seq": seqs.until - 1, "bytes": seqs.bytes}
            for seqs in planned.ranges
        ],
        "days": [{"day": day.day.isoformat(), "bytes": day.bytes} for day in planned.days],
        "rows": counts if done is None else done.rows,
        "kept": [kept._asdict() for kept in planned.kept],
        "dropped": None if done is None else done.tables,
        "events_kept": None if done is None else done.events_kept,
        "left": None if done is None else [left._asdict() for left in done.left],
    }


def _size_text(bytes: int) -> str:
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

        def report(table: str, rows: int) -> None:
            if not quiet:
                typer.echo(f"{table}: {rows:,} rows" if rows else f"dropped {table}", err=True)

        return planned, {}, await prune_now(connection, settings, report)
