"""`tocsin prune`: drop what is older than its retention now, or say what would go and what holds the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.failures import finish
from tocsin.cli.options import Json
from tocsin.cli.printing import print_json

if TYPE_CHECKING:
    from clock.retention.plan import PrunePlan
    from clock.retention.prune import Pruned


def prune(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be dropped.")] = False,
    as_json: Json = False,
) -> None:
    """Drop old partitions of the log and of datapoints; the clock does the same once an hour.

    \b
    Example:
      tocsin prune --dry-run
    """
    planned, done = finish(_prune(dry_run, quiet=as_json))
    if as_json:
        print_json(_facts(planned, done))
        return
    if done is None:
        for one in planned.ranges:
            typer.echo(f"would drop records {one.start} to {one.until - 1} ({_size(one.bytes)})")
        for day in planned.days:
            typer.echo(f"would drop datapoints of {day.day} ({_size(day.bytes)})")
    elif done.tables:
        kept = f", {done.events_kept} events kept aside" if done.events_kept else ""
        typer.echo(f"dropped {len(done.tables)} partitions ({_size(done.bytes)}){kept}")
    if not planned.ranges and not planned.days:
        typer.echo("nothing is old enough to be dropped")
    for left in (*(done.left if done is not None else ()), *planned.kept):
        typer.echo(f"kept {left.what}: {left.why}")


def _facts(planned: PrunePlan, done: Pruned | None) -> dict[str, Any]:
    return {
        "ranges": [
            {"from_seq": one.start, "until_seq": one.until - 1, "bytes": one.bytes} for one in planned.ranges
        ],
        "days": [{"day": day.day.isoformat(), "bytes": day.bytes} for day in planned.days],
        "kept": [one._asdict() for one in planned.kept],
        "dropped": None if done is None else done.tables,
        "events_kept": None if done is None else done.events_kept,
        "left": None if done is None else [one._asdict() for one in done.left],
    }


def _size(bytes: int) -> str:
    return f"{bytes / 2**20:.1f} MiB"


async def _prune(dry_run: bool, *, quiet: bool) -> tuple[PrunePlan, Pruned | None]:
    from clock.retention.prune import prune as prune_now
    from clock.retention.prune import read_plan
    from tocsin.cli.session import command_settings, database

    settings = command_settings()
    async with database() as connection:
        planned = await read_plan(connection, settings)
        if dry_run:
            return planned, None

        def tell(table: str) -> None:
            if not quiet:
                typer.echo(f"dropped {table}", err=True)

        return planned, await prune_now(connection, settings, tell)
