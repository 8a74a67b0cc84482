"""`tocsin timers`: the working set, with what failed and what was parked; `tocsin timers retry` brings one back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import finish
from tocsin.cli.options import CreatedBy, Json, current_user
from tocsin.cli.output import due_text, print_json, print_table, utc_text

if TYPE_CHECKING:
    from datetime import datetime


def timers(
    context: typer.Context,
    kind: Annotated[
        str | None, typer.Option("--kind", help="schedule-tick, for-sustain, runbook-wait or watchdog.")
    ] = None,
    parked: Annotated[
        bool, typer.Option("--parked", help="Only those parked after repeated failures.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="At most this many.")] = 100,
    as_json: Json = False,
) -> None:
    """List the pending timers, the next to fire first; or retry one that failed.

    \b
    Example:
      tocsin timers --kind schedule-tick
    """
    if context.invoked_subcommand is not None:
        return
    now, rows = finish(_timers(kind, parked, limit))
    if as_json:
        print_json(rows)
        return
    if not rows:
        typer.echo("no parked timers" if parked else "no timers are armed")
        return
    print_table(
        ("KIND", "FOR", "FIRES AT", "COUNTDOWN", "ATTEMPTS", "STATE"),
        (
            (
                row["kind"],
                row["schedule"] or "/".join(part for part in (row["ref"], row["key"]) if part),
                utc_text(row["fire_at"]),
                due_text(row["fire_at"] - now),
                str(row["attempts"]),
                _state(row),
            )
            for row in rows
        ),
    )


def retry(
    kind: Annotated[str, typer.Argument(help="schedule-tick, for-sustain, runbook-wait or watchdog.")],
    ref: Annotated[
        str, typer.Argument(help="Its ref, as `tocsin timers --json` shows it; or the name of a schedule.")
    ],
    key: Annotated[str, typer.Argument(help="Its key, if it has one.")] = "",
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Make a timer that failed due again, after its cause was mended; its failures are forgotten.

    \b
    Example:
      tocsin timers retry schedule-tick daily-digest
    """
    found = finish(_retry(kind, ref, key, by or current_user()))
    if as_json:
        print_json(found)
        return
    failures = f"{found['attempts']} failure{'' if found['attempts'] == 1 else 's'}"
    typer.echo(f"{kind} {ref} is due again, after {failures}: {found['last_error']}")


def _state(row: dict[str, Any]) -> str:
    if row["parked_at"] is not None:
        return f"parked: {row['last_error']}"
    if row["cause"] is not None:
        return f"held: {row['cause']}"
    return f"failing: {row['last_error']}" if row["last_error"] else "armed"


async def _timers(kind: str | None, parked: bool, limit: int) -> tuple[datetime, list[dict[str, Any]]]:
    from timers.working_set import database_now, list_timers
    from tocsin.cli.session import database

    async with database() as connection:
        rows = await list_timers(connection, kind=kind, parked=parked, limit=limit)
        return await database_now(connection), rows


async def _retry(kind: str, ref: str, key: str, who: str) -> dict[str, Any]:
    from timers.retry import retry_timer
    from tocsin.cli.session import command_actor, database

    async with database() as connection:
        return await retry_timer(connection, kind, ref, key, await command_actor(connection, who))
