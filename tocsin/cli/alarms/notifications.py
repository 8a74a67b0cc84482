"""`tocsin notifications`: what channels were notified about, what fails and what is held.

Guarantee: reads only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json
from tocsin.cli.output import print_json, print_table, shortened, since_text, title
from tocsin.cli.remote.over_http import over_http

if TYPE_CHECKING:
    from datetime import datetime

State = Annotated[
    str | None,
    typer.Option("--state", help="due, idle, gathering, held, failing, or failed (it was given up)."),
]
Channel = Annotated[str | None, typer.Option("--channel", help="Only to this channel.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most this many.")]
_MAX_LENGTH = 100


def notifications(
    state: State = None, channel: Channel = None, limit: Limit = 50, as_json: Json = False
) -> None:
    """List notifications of open alarms, those that fail first.

    \b
    Examples:
      tocsin notifications --state failing
      tocsin notifications --channel ops
    """
    now, rows = run_command(_list(state, channel, limit))
    if as_json:
        print_json(rows)
        return
    if not rows:
        typer.echo("no notifications match" if state or channel else "no alarm with a notification is open")
        return
    print_table(
        ("ID", "CHANNEL", "STATE", "ROUTE", "ALARMS", "MESSAGES", "SINCE", "DETAIL"),
        (_row(row, now) for row in rows),
    )


@over_http("alarms.list_notifications")
async def _list(state: str | None, channel: str | None, limit: int) -> tuple[datetime, list[dict[str, Any]]]:
    from rules.alarms.notifications import STATES, list_notifications
    from timers.working_set import database_now
    from tocsin.cli.session import database
    from tocsin.core.errors import InvalidInput

    if state not in (None, *STATES):
        raise InvalidInput(f"unknown state {state!r}", remedy=f"use one of {', '.join(STATES)}")
    async with database() as connection:
        states = None if state is None else (state,)
        rows = await list_notifications(connection, states=states, channel=channel, limit=limit)
        return await database_now(connection), rows


def _row(row: dict[str, Any], now: datetime) -> tuple[str, ...]:
    from rules.alarms.notifications import status_text

    return (
        str(row["id"])[:8],
        row["channel"],
        row["state"],
        title(row["owner"], row["route"]) if row["alarms"] == 1 else row["route"],
        str(row["alarms"]),
        str(row["messages"]),
        since_text(row["failing_since"] or row["started_at"], now),
        shortened(status_text(row), _MAX_LENGTH),
    )
