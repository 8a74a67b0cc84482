"""`tocsin timers`: lists the working set. `tocsin timers retry`: makes a failed timer due again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import CreatedBy, Json, current_user
from tocsin.cli.output import due_text, print_json, print_table, printable, utc_text

if TYPE_CHECKING:
    from datetime import datetime


def timers(
    context: typer.Context,
    kind: Annotated[
        str | None, typer.Option("--kind", help="schedule-tick, for-sustain, runbook-wait or watchdog.")
    ] = None,
    parked: Annotated[
        bool, typer.Option("--parked", help="Only parked timers, which failed repeatedly.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="At most this many.")] = 100,
    as_json: Json = False,
) -> None:
    """List pending timers, the next to fire first, or retry one.

    \b
    Examples:
      tocsin timers --kind schedule-tick
      tocsin timers retry schedule-tick daily-digest
    """
    if context.invoked_subcommand is not None:
        return
    now, rows = run_command(_timers(kind, parked, limit))
    if as_json:
        print_json(rows)
        return
    if not rows:
        typer.echo("no timers match" if parked or kind else "no timers are pending")
        return
    print_table(
        ("KIND", "OF", "FIRES AT", "COUNTDOWN", "ATTEMPTS", "STATE"),
        (
            (
                row["kind"],
                row["schedule"] or "/".join(part for part in (row["ref"], row["key"]) if part),
                utc_text(row["fire_at"]),
                due_text(row["fire_at"] - now),
                str(row["attempts"]),
                _state_text(row),
            )
            for row in rows
        ),
    )


def retry(
    kind: Annotated[str, typer.Argument(help="schedule-tick, for-sustain, runbook-wait or watchdog.")],
    ref: Annotated[
        str, typer.Argument(help="Ref of the timer in `tocsin timers --json`, or name of a schedule.")
    ],
    key: Annotated[str, typer.Argument(help="Key of the timer, if it has one.")] = "",
    by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Make a failed timer due again.

    Fix the cause first. The number of failures starts again at zero.

    \b
    Example:
      tocsin timers retry schedule-tick daily-digest
    """
    timer = run_command(_retry(kind, ref, key, by or current_user()))
    if as_json:
        print_json(timer)
        return
    failures = f"{timer['attempts']} failure{'' if timer['attempts'] == 1 else 's'}"
    typer.echo(printable(f"{kind} {ref} is due again after {failures}; the last was: {timer['last_error']}"))


def _state_text(row: dict[str, Any]) -> str:
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
    from tocsin.policy import Operation

    async with database() as connection:
        actor = await command_actor(connection, who, Operation.RETRY_TIMER)
        return await retry_timer(connection, kind, ref, key, actor)
