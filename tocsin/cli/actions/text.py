"""Runs of actions as text: a list, and one run with its attempts."""

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
    shortened,
    since_text,
    title,
    utc_text,
)
from tocsin.core.errors import InvalidInput

if TYPE_CHECKING:
    from rules.actions.history import Attempt

STATE_HELP = (
    "running, completed, failed, timed_out, cancelled, skipped, queued, gathering,"
    " or dead (failed or timed_out)."
)
_MAX_LENGTH = 80


def states_option(state: str | None) -> tuple[str, ...] | None:
    from rules.runbook.states import DEAD, RUN_STATES

    if state in (None, *RUN_STATES):
        return None if state is None else (state,)
    if state == "dead":
        return DEAD
    raise InvalidInput(f"unknown state {state!r}", remedy=f"use one of {', '.join(RUN_STATES)}, or dead")


def print_runs(rows: list[dict[str, Any]], now: datetime, nothing: str) -> None:
    if not rows:
        typer.echo(nothing)
        return
    print_table(
        ("ID", "ACTION", "STATE", "RULE", "STARTED", "DURATION", "ATTEMPTS", "ERROR"),
        (
            (
                str(row["id"])[:8],
                title(row["owner"], row["name"]),
                row["state"],
                row["rule"],
                since_text(row["started_at"], now),
                _duration(row),
                str(row["attempts"]),
                shortened(row["error"] or "", _MAX_LENGTH),
            )
            for row in rows
        ),
    )


def print_run(row: dict[str, Any], attempts: list[Attempt], as_json: bool) -> None:
    if as_json:
        print_json({**row, "steps": [_attempt_json(attempt) for attempt in attempts]})
        return
    for key, value in _lines(row):
        typer.echo(f"  {key:<12} {printable(value)}")
    typer.echo("")
    print_table(
        ("STEP", "NAME", "KIND", "ATTEMPT", "STATE", "DUE", "DURATION", "RESULT"),
        (
            (
                str(attempt.step),
                attempt.name,
                attempt.kind,
                str(attempt.attempt),
                f"{attempt.state}, late" if attempt.result.get("late") else attempt.state,
                utc_text(attempt.due_at),
                "" if attempt.took is None else duration_text(attempt.took),
                shortened(_result_text(attempt), _MAX_LENGTH),
            )
            for attempt in attempts
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
        lines.append(("ended", f"{utc_text(row['ended_at'])}, after {_duration(row)}"))
    if row["error"]:
        lines.append(("error", row["error"]))
    lines.append(("event", f"{row['event_id']}, seq {row['event_seq']}"))
    if row["alarm_id"] is not None:
        lines.append(("alarm", str(row["alarm_id"])))
    if row["lineage"]:
        lines.append(("caused by", " -> ".join(row["lineage"])))
    return lines


def _result_text(attempt: Attempt) -> str:
    return attempt.error or compact(dict(attempt.result)) if attempt.result else ""


def _attempt_json(attempt: Attempt) -> dict[str, Any]:
    took = attempt.took
    return {
        "step": attempt.step,
        "name": attempt.name,
        "kind": attempt.kind,
        "attempt": attempt.attempt,
        "state": attempt.state,
        "due_at": attempt.due_at,
        "changed_at": attempt.changed_at,
        "took_ms": None if took is None else round(took.total_seconds() * 1000),
        "result": dict(attempt.result),
    }


def _duration(row: dict[str, Any]) -> str:
    if row["ended_at"] is None:
        return ""
    return duration_text(max(row["ended_at"] - row["started_at"], timedelta(0)))
