"""`tocsin series`: the newest value of each series, how old it is, and whether it is still fresh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.failures import finish
from tocsin.cli.options import Json
from tocsin.cli.printing import countdown, json_text, print_json, print_table, utc_text

if TYPE_CHECKING:
    from datetime import datetime, timedelta


def series(
    owner: Annotated[str | None, typer.Option("--owner", help="Only of this owner.")] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="Only this key, or pattern such as dsp.* or dsp.**.")
    ] = None,
    stale: Annotated[bool, typer.Option("--stale", help="Only those whose data stopped.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="At most this many.")] = 100,
    as_json: Json = False,
) -> None:
    """List series with their newest value.

    \b
    Examples:
      tocsin series --owner plant-7
      tocsin series --key 'dsp.**' --stale
    """
    now, rows = finish(_series(owner, key, stale, limit))
    if as_json:
        print_json([{**row, "age_s": (now - row["arrived_at"]).total_seconds()} for row in rows])
        return
    if not rows:
        typer.echo("no such series" if owner or key or stale else "no datapoint has arrived yet")
        return
    print_table(
        ("OWNER", "KEY", "VALUE", "MEASURED", "ARRIVED", "FRESHNESS"),
        (
            (
                row["owner"],
                row["key"],
                json_text(row["value"]),
                utc_text(row["ts"]),
                _ago(row["arrived_at"] - now),
                row["freshness"],
            )
            for row in rows
        ),
    )


def _ago(distance: timedelta) -> str:
    shown = countdown(distance)
    return shown if shown.endswith("ago") else "just now"


async def _series(
    owner: str | None, key: str | None, stale: bool, limit: int
) -> tuple[datetime, list[dict[str, Any]]]:
    from rules.datapoints.listing import list_series
    from timers.working_set import database_now
    from tocsin.cli.session import database

    async with database() as connection:
        rows = await list_series(connection, owner=owner, key=key, stale=stale, limit=limit)
        return await database_now(connection), rows
