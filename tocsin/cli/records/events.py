"""`tocsin events`: the record log's events, from the table, newest last."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tocsin.cli.errors import finish
from tocsin.cli.options import Json
from tocsin.cli.output import compact, print_json, print_table, utc_text
from tocsin.core.errors import InvalidInput

_ORIGINS = ("caused", "derived", "external", "scheduled")


def events(
    since_seq: Annotated[
        int | None, typer.Option("--since-seq", min=0, help="The first ones after this seq.")
    ] = None,
    type_: Annotated[str | None, typer.Option("--type", help="Only of this type.")] = None,
    schedule: Annotated[str | None, typer.Option("--schedule", help="Only of this schedule.")] = None,
    origin: Annotated[
        str | None, typer.Option("--origin", help="caused, derived, external or scheduled.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most this many.")] = 20,
    as_json: Json = False,
) -> None:
    """Show recorded events, newest last; the newest ones, or the first ones after a seq.

    \b
    Example:
      tocsin events --origin scheduled --schedule heartbeat --limit 5
    """
    if origin is not None and origin not in _ORIGINS:
        raise InvalidInput(f"unknown origin {origin!r}", remedy=f"use one of {', '.join(_ORIGINS)}")
    filters = {"type": type_, "schedule": schedule, "origin": origin, "limit": limit}
    rows = finish(_events(since_seq, filters))
    if as_json:
        print_json(rows)
        return
    if not rows:
        typer.echo("no such events")
        return
    print_table(
        ("SEQ", "NOMINAL TIME", "LATE", "ORIGIN", "TYPE", "NAME", "OWNER", "PAYLOAD"),
        (
            (
                str(row["seq"]),
                utc_text(row["ts"]),
                _lateness(row),
                row["origin"],
                row["type"],
                row["schedule"] or row["rule"] or row["action"],
                row["owner"],
                _shortened(compact(row["payload"])),
            )
            for row in rows
        ),
    )


def _lateness(row: dict[str, Any]) -> str:
    if row["fire_at"] is None:
        return ""
    return f"{max(0, round((row['recorded_at'] - row['fire_at']).total_seconds() * 1000))} ms"


def _shortened(text: str, longest: int = 80) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


async def _events(since: int | None, filters: dict[str, Any]) -> list[dict[str, Any]]:
    from psycopg.rows import dict_row

    from tocsin.cli.session import database
    from tocsin.core.db import statement

    async with database() as connection, connection.cursor(row_factory=dict_row) as cursor:
        if since is not None:
            await cursor.execute(statement("tocsin.cli/read_events_since"), {**filters, "since": since})
            return await cursor.fetchall()
        await cursor.execute(statement("tocsin.cli/read_newest_events"), filters)
        return list(reversed(await cursor.fetchall()))
