"""How actions are printed: in a list, and one with its attempts."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import typer

from tocsin.cli.output import (
    compact,
    duration_text,
    print_json,
    print_table,
    printable,
    since_text,
    title,
    utc_text,
)
from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    from rules.actions.history import Attempt

STATE_HELP = (
    "running, completed, failed, timed_out, cancelled, skipped, queued, gathering; dead: failed or timed out."
)
_LONGEST = 80


def states_option(state: str | None) -> tuple[str, ...] | None:
    from rules.runbook.states import DEAD, RUN_STATES

    if state in (None, *RUN_STATES):
        return None if state is None else (state,)
    if state == "dead":
        return DEAD
    raise InvalidInput(f"unknown state {state!r}", remedy=f"use one of {', '.join(RUN_STATES)}, or dead")


def actions_table(rows: list[dict[str, Any]], now: datetime, nothing: str) -> None:
    if not rows:
        typer.echo(nothing)
        return
    print_table(
        ("ID", "ACTION", "STATE", "RULE", "STARTED", "TOOK", "ATTEMPTS", "ERROR"),
        (
            (
                str(row["id"])[:8],
                title(row["owner"], row["name"]),
                row["state"],
                row["rule"],
                since_text(row["started_at"] - now),
                _took(row),
                str(row["attempts"]),
                _shortened(row["error"] or ""),
            )
            for row in rows
        ),
    )


def print_action(row: dict[str, Any], attempts: list[Attempt], as_json: bool) -> None:
    if as_json:
        print_json({**row, "steps": [_facts(one) for one in attempts]})
        return
    for key, value in _lines(row):
        typer.echo(f"  {key:<12} {printable(value)}")
    typer.echo("")
    print_table(
        ("STEP", "NAME", "KIND", "ATTEMPT", "STATE", "DUE", "TOOK", "SAYS"),
        (
            (
                str(one.step),
                one.name,
                one.kind,
                str(one.attempt),
                f"{one.state}, late" if one.result.get("late") else one.state,
                utc_text(one.due_at),
                "" if one.took is None else duration_text(one.took),
                _shortened(one.error or compact(dict(one.result)) if one.result else ""),
            )
            for one in attempts
        ),
    )


def _lines(row: dict[str, Any]) -> list[tuple[str, str]]:
    lines = [
        ("id", str(row["id"])),
        ("action", row["name"]),
        ("rule", row["rule"]),
        ("owner", row["owner"] or "none"),
        ("state", row["state"]),
        ("started", utc_text(row["started_at"])),
    ]
    if row["ended_at"] is not None:
        lines.append(("ended", f"{utc_text(row['ended_at'])}, after {_took(row)}"))
    if row["error"]:
        lines.append(("error", row["error"]))
    lines.append(("event", f"{row['event_id']}, seq {row['event_seq']}"))
    if row["alarm_id"] is not None:
        lines.append(("alarm", str(row["alarm_id"])))
    if row["lineage"]:
        lines.append(("caused by", " -> ".join(row["lineage"])))
    return lines


def _facts(one: Attempt) -> dict[str, Any]:
    took = one.took
    return {
        "step": one.step,
        "name": one.name,
        "kind": one.kind,
        "attempt": one.attempt,
        "state": one.state,
        "due_at": one.due_at,
        "changed_at": one.changed_at,
        "took_ms": None if took is None else round(took.total_seconds() * 1000),
        "result": dict(one.result),
    }


def _took(row: dict[str, Any]) -> str:
    if row["ended_at"] is None:
        return ""
    return duration_text(max(row["ended_at"] - row["started_at"], timedelta(0)))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
