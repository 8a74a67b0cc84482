"""How one schedule is printed, after `add`, `get`, `pause`, `resume` and `cancel` alike."""

from __future__ import annotations

from typing import Any

import typer

from tocsin.cli.output import compact, local_text, print_json, printable, title, utc_text
from tocsin.cli.schedules.coming_fires import recurrence_text, schedule_facts, tz_of
from tocsin.cli.schedules.last_result import result_text


def print_schedule(row: dict[str, Any], as_json: bool, **extra: object) -> None:
    """`extra` goes into the JSON; `outcome` among it is also the first word for people."""
    if as_json:
        print_json({**extra, **schedule_facts(row)})
        return
    outcome = extra.get("outcome")
    if outcome is not None:
        suffix = " (deduped: it was there already)" if extra.get("deduped") else ""
        typer.echo(f"{outcome} schedule {printable(title(row['owner'], row['name']))}{suffix}")
    for key, value in _lines(row):
        typer.echo(f"  {key:<12} {printable(value)}")


def _lines(row: dict[str, Any]) -> list[tuple[str, str]]:
    lines = [
        ("name", row["name"]),
        ("owner", row["owner"] or "none"),
        ("status", "parked" if row["parked_at"] else row["status"]),
        ("recurrence", recurrence_text(row)),
    ]
    if row["nominal_at"] is not None:
        next_text = f"{local_text(row['nominal_at'], tz_of(row))} = {utc_text(row['nominal_at'])}"
        lines.append(("next fire", next_text))
    if row["last_occurrence"] is not None:
        lines.append(("last time", utc_text(row["last_occurrence"])))
    lines += [
        ("type", row["type"]),
        ("payload", compact(row["payload"])),
        ("action", row["action"] or "none"),
        ("catch up", row["catch_up"]),
        ("generation", str(row["generation"])),
        ("made", f"by {row['created_by']} via {row['created_via']} at {utc_text(row['created_at'])}"),
    ]
    if row.get("last_result") is not None:
        lines.append(("last result", result_text(row["last_result"])))
    if row["last_error"]:
        lines.append(("error", f"{row['last_error']} (failed {row['attempts']} times)"))
    return lines
