"""`tocsin events`: shows the events of the record log, from the database. Reads only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json, OnlyOwner, instant_or_ago
from tocsin.cli.output import compact, print_json, print_table, shortened, utc_text
from tocsin.cli.records.filters import Rule, Type, check_filters
from tocsin.cli.remote.over_http import over_http
from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    from tocsin.core.db import Connection

_ORIGINS = ("caused", "derived", "external", "scheduled")
_MAX_PAYLOAD_LENGTH = 80


def events(  # noqa: PLR0913 - one option per filter
    since: Annotated[
        str | None,
        typer.Option("--since", help="Only recorded since: 2h ago, or an instant such as 2026-03-07T00:00Z."),
    ] = None,
    since_seq: Annotated[
        int | None,
        typer.Option("--since-seq", min=0, help="The first events after this seq, not the newest."),
    ] = None,
    owner: OnlyOwner = None,
    rule: Rule = None,
    type_: Type = None,
    schedule: Annotated[str | None, typer.Option("--schedule", help="Only of this schedule.")] = None,
    origin: Annotated[
        str | None, typer.Option("--origin", help="caused, derived, external or scheduled.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most this many.")] = 20,
    as_json: Json = False,
) -> None:
    """Show events of the record log, the newest last.

    \b
    Examples:
      tocsin events --since 2h --owner plant-7
      tocsin events --rule room-hot --type alarm-opened
      tocsin events --since-seq 1000 --limit 100
    """
    if origin is not None and origin not in _ORIGINS:
        raise InvalidInput(f"unknown origin {origin!r}", remedy=f"use one of {', '.join(_ORIGINS)}")
    if since is not None and since_seq is not None:
        raise InvalidInput("--since and --since-seq exclude each other", remedy="keep one of them")
    check_filters(type_, owner=owner, rule=rule, schedule=schedule)
    filters = {"owner": owner, "rule": rule, "type": type_, "schedule": schedule, "origin": origin}
    rows = run_command(_events(since, since_seq, {**filters, "limit": limit}))
    if as_json:
        print_json(rows)
        return
    if not rows:
        typer.echo("no events match" if since or any(filters.values()) else "no events")
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
                shortened(compact(row["payload"]), _MAX_PAYLOAD_LENGTH),
            )
            for row in rows
        ),
    )


def _lateness(row: dict[str, Any]) -> str:
    if row["fire_at"] is None:
        return ""
    return f"{max(0, round((row['recorded_at'] - row['fire_at']).total_seconds() * 1000))} ms"


@over_http("records.list_events")
async def _events(since: str | None, since_seq: int | None, filters: dict[str, Any]) -> list[dict[str, Any]]:
    from tocsin.cli.session import database
    from tocsin.core.db import fetch_dicts

    async with database() as connection:
        if since_seq is not None:
            after = {**filters, "after": since_seq}
            rows = await fetch_dicts(connection, "tocsin.cli/read_first_events", after)
        else:
            after = {**filters, "after": 0 if since is None else await _last_seq_before(connection, since)}
            rows = list(reversed(await fetch_dicts(connection, "tocsin.cli/read_newest_events", after)))
    return [_with_severity(row) for row in rows]


def _with_severity(row: dict[str, Any]) -> dict[str, Any]:
    from schemas.values.severities import level_name

    level = row["severity"]
    return {**row, "severity": None if level is None else level_name(level), "level": level}


async def _last_seq_before(connection: Connection, since: str) -> int:
    """The seq of the last record that was committed before `since`.

    Bisects the commits, whose times rise with their seqs: some twenty reads for a million commits.
    """
    from cdc.log_reader import LogReader
    from timers.working_set import database_now
    from tocsin.core.db import fetch_one

    instant = instant_or_ago(since, "--since", await database_now(connection))
    low, high = 0, await LogReader(connection).head()
    while low < high:
        middle = (low + high) // 2
        row = await fetch_one(connection, "tocsin.cli/read_next_commit", {"after": middle})
        if row is None or row[1] >= instant:
            high = middle
        else:
            low = row[0]
    return low
