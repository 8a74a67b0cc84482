"""`tocsin series`: lists series with their newest value and whether they are fresh or stale. Reads
only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json, OnlyOwner
from tocsin.cli.output import countdown, json_text, print_json, print_table, since_text, utc_text
from tocsin.cli.remote.over_http import over_http
from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    from datetime import datetime


def series(
    owner: OnlyOwner = None,
    key: Annotated[
        str | None,
        typer.Option("--key", help="Only series with this key, or a pattern such as dsp.* or dsp.**."),
    ] = None,
    type: Annotated[str | None, typer.Option("--type", help="Only series of this datapoint_type.")] = None,
    stale: Annotated[bool, typer.Option("--stale", help="Only stale series.")] = False,
    unknown: Annotated[
        bool, typer.Option("--unknown", help="Only expected series that have never sent a datapoint.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="At most this many.")] = 100,
    as_json: Json = False,
) -> None:
    """List series with their newest value, deadline and status.

    CAUSE tells why a series whose deadline has passed is not stale yet.

    \b
    Examples:
      tocsin series --owner plant-7
      tocsin series --key 'dsp.**' --stale
      tocsin series --unknown
    """
    if stale and unknown:
        raise InvalidInput(
            "--stale and --unknown exclude each other: a series without data is not stale",
            remedy="keep one of them",
        )
    now, rows = run_command(_series(owner, key, type, stale, unknown, limit))
    if as_json:
        print_json([{**row, "age_s": _age_s(row, now)} for row in rows])
    elif unknown:
        _print_unknown(rows)
    elif not rows:
        is_unfiltered = not (owner or key or type or stale)
        typer.echo("no datapoint has arrived yet" if is_unfiltered else "no series match")
    else:
        _print_series(rows, now)


def _print_unknown(rows: list[dict[str, Any]]) -> None:
    if not rows:
        typer.echo("every expected series has sent a datapoint")
        return
    print_table(
        ("OWNER", "KEY", "TYPE", "EXPECTED BY"),
        ((row["owner"], row["key"], row["datapoint_type"] or "", row["by"]) for row in rows),
    )


def _print_series(rows: list[dict[str, Any]], now: datetime) -> None:
    print_table(
        ("OWNER", "KEY", "VALUE", "MEASURED", "ARRIVED", "STATUS", "DEADLINE", "CAUSE"),
        (
            (
                row["owner"],
                row["key"],
                json_text(row["value"]),
                utc_text(row["ts"]),
                since_text(row["arrived_at"], now),
                row["freshness"],
                "" if row["deadline"] is None else countdown(row["deadline"] - now),
                row["cause"] or "",
            )
            for row in rows
        ),
    )


def _age_s(row: dict[str, Any], now: datetime) -> float | None:
    return None if row["arrived_at"] is None else (now - row["arrived_at"]).total_seconds()


@over_http("instance.list_series")
async def _series(
    owner: str | None, key: str | None, type: str | None, stale: bool, unknown: bool, limit: int
) -> tuple[datetime, list[dict[str, Any]]]:
    from rules.alarms.series_queries import list_series, list_series_without_data
    from timers.working_set import database_now
    from tocsin.cli.session import database

    async with database() as connection:
        if unknown:
            rows = await list_series_without_data(connection, owner=owner, key=key, type=type, limit=limit)
        else:
            rows = await list_series(connection, owner=owner, key=key, type=type, stale=stale, limit=limit)
        return await database_now(connection), rows
