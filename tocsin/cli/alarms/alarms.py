"""`tocsin alarms`: lists alarms. Reads only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json, OnlyOwner
from tocsin.cli.output import countdown, print_json, print_table, since_text
from tocsin.cli.remote.over_http import over_http
from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    from datetime import datetime

_ACTIVE = "active"


def alarms(
    state: Annotated[
        str, typer.Option("--state", help="pending, open, resolved, active (pending or open) or all.")
    ] = _ACTIVE,
    rule: Annotated[str | None, typer.Option("--rule", help="Only of this event_rule.")] = None,
    owner: OnlyOwner = None,
    severity: Annotated[
        str | None, typer.Option("--severity", help="Only of this severity and above, such as high.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="At most this many.")] = 100,
    as_json: Json = False,
) -> None:
    """List alarms, the most severe first.

    Pending and open alarms are listed unless --state names others. `silenced` and `inhibited` mark
    open alarms that notify no one; `tocsin explain ID` names the reason.

    \b
    Examples:
      tocsin alarms
      tocsin alarms --state resolved --owner plant-7
    """
    now, rows = run_command(_alarms(_states(state), rule, owner, severity, limit))
    if as_json:
        print_json(rows)
        return
    if not rows:
        is_filtered = state not in (_ACTIVE, "all") or rule or owner or severity
        typer.echo("no alarms match" if is_filtered else "no alarms")
        return
    print_table(
        ("ID", "SEVERITY", "STATE", "RULE", "OWNER", "INSTANCE", "SINCE", "MESSAGE"),
        (
            (
                str(row["id"])[:8],
                row["severity"],
                _state_text(row, now),
                row["event_rule"],
                row["owner"],
                row["instance"],
                since_text(row["since"], now),
                _message(row["payload"]),
            )
            for row in rows
        ),
    )


def _message(payload: dict[str, Any]) -> str:
    """`Disk is full: disk.used of db-1 is above 90`; a rule without a title has the message alone."""
    return ": ".join(str(payload[name]) for name in ("title", "message") if payload.get(name))


def _states(state: str) -> tuple[str, ...]:
    from rules.alarms.queries import STATES, UNRESOLVED

    if state == _ACTIVE:
        return UNRESOLVED
    if state == "all":
        return STATES
    if state not in STATES:
        raise InvalidInput(
            f"--state {state!r} is unknown", remedy=f"use {', '.join(STATES)}, {_ACTIVE} or all"
        )
    return (state,)


def _state_text(row: dict[str, Any], now: datetime) -> str:
    marks = []
    if row["acknowledged_at"] is not None and row["state"] == "open":
        marks.append(f"acknowledged by {row['acknowledged_by']}")
    if row["snoozed_until"] is not None and row["snoozed_until"] > now and row["state"] == "open":
        marks.append(f"snoozed for {countdown(row['snoozed_until'] - now).removeprefix('in ')}")
    elif row["suppressed_by"] is not None:
        marks.append("inhibited" if row["suppressed_by"].startswith("alarm:") else "silenced")
    return f"{row['state']} ({', '.join(marks)})" if marks else str(row["state"])


@over_http("alarms.list_alarms")
async def _alarms(
    states: tuple[str, ...], rule: str | None, owner: str | None, severity: str | None, limit: int
) -> tuple[datetime, list[dict[str, Any]]]:
    from rules.alarms.queries import list_alarms
    from rules.suppression.reader import Suppressions
    from schemas.values.severities import level, level_name
    from timers.working_set import database_now
    from tocsin.cli.session import database

    lowest = 0 if severity is None else level(severity)
    async with database() as connection:
        rows = await list_alarms(
            connection, states=states, rule=rule, owner=owner, min_severity=lowest, limit=limit
        )
        now = await database_now(connection)
        suppressions = await Suppressions().of_open(connection, now) if rows else {}
    for row in rows:
        suppression = suppressions.get(row["id"])
        row |= {"severity": level_name(row["severity"]), "level": row["severity"]}
        row |= {
            "suppressed_by": suppression and suppression.key,
            "suppressed_because": suppression and suppression.reason,
        }
    return now, rows
