"""`tocsin prune`: removes data that is older than its retention, or lists it with `--dry-run`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json
from tocsin.cli.output import print_json

if TYPE_CHECKING:
    from clock.retention.plan import KeptItem, PrunePlan
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
    if dry_run:
        _list_prunable(as_json)
    else:
        _remove(as_json)


def _list_prunable(as_json: bool) -> None:
    planned, counts = run_command(_count())
    if as_json:
        print_json(
            {**_plan_json(planned), "rows": counts, "dropped": None, "events_kept": None, "left": None}
        )
        return
    for log_range in planned.ranges:
        size = _size_text(log_range.bytes)
        typer.echo(f"would drop records {log_range.start} to {log_range.until - 1} ({size})")
    for day in planned.days:
        typer.echo(f"would drop datapoints of {day.day} ({_size_text(day.bytes)})")
    for table, count in counts.items():
        typer.echo(f"would remove from {table}: {count:,} rows")
    _print_rest(planned, has_rows=bool(counts))


def _remove(as_json: bool) -> None:
    planned, pruned = run_command(_prune(quiet=as_json))
    if as_json:
        results = {
            "rows": pruned.rows,
            "dropped": pruned.tables,
            "events_kept": pruned.events_kept,
            "left": [item._asdict() for item in pruned.left],
        }
        print_json({**_plan_json(planned), **results})
        return
    if pruned.tables:
        events = f", {pruned.events_kept} events kept" if pruned.events_kept else ""
        typer.echo(f"dropped {len(pruned.tables)} partitions ({_size_text(pruned.bytes)}){events}")
    for table, count in pruned.rows.items():
        typer.echo(f"removed from {table}: {count:,} rows")
    _print_rest(planned, has_rows=bool(pruned.rows), in_use=pruned.left)


def _print_rest(planned: PrunePlan, *, has_rows: bool, in_use: Sequence[KeptItem] = ()) -> None:
    """Print what stays: tables that were in use, and data that is still needed."""
    if not planned.ranges and not planned.days and not has_rows:
        typer.echo("nothing is older than its retention")
    for item in (*in_use, *planned.kept):
        typer.echo(f"kept {item.what}: {item.why}")


def _plan_json(planned: PrunePlan) -> dict[str, Any]:
    return {
        "ranges": [
            {"from_seq": log_range.start, "until_seq": log_range.until - 1, "bytes": log_range.bytes}
            for log_range in planned.ranges
        ],
        "days": [{"day": day.day.isoformat(), "bytes": day.bytes} for day in planned.days],
        "kept": [item._asdict() for item in planned.kept],
    }


def _size_text(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:.1f} MiB"


async def _count() -> tuple[PrunePlan, dict[str, int]]:
    """The plan, and the number of rows that would be removed from each table."""
    from clock.retention.prune import count_prunable, read_plan
    from tocsin.cli.session import command_settings, database

    settings = command_settings()
    async with database() as connection:
        planned = await read_plan(connection, settings)
        return planned, await count_prunable(connection, settings, planned)


async def _prune(*, quiet: bool) -> tuple[PrunePlan, Pruned]:
    from clock.retention import prune as retention
    from tocsin.cli.access import require
    from tocsin.cli.session import command_settings, database
    from tocsin.policy import Operation

    def report(table: str, rows: int) -> None:
        if not quiet:
            # 0 rows: the whole partition was dropped.
            typer.echo(f"{table}: {rows:,} rows" if rows else f"dropped {table}", err=True)

    settings = command_settings()
    async with database() as connection:
        await require(connection, Operation.PRUNE)
        planned = await retention.read_plan(connection, settings)
        return planned, await retention.prune(connection, settings, report)
