"""One schedule as text and as JSON, the same after `add`, `show`, `pause`, `resume` and
`cancel`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from timers.coming_fires import tz_of
from timers.recurrence import parse_spec
from tocsin.cli.output import compact, local_text, print_json, printable, title, utc_text
from tocsin.cli.schedules.last_result import result_json, result_text

Row = Mapping[str, Any]
_CONTENT = (
    *("name", "owner", "status", "generation", "type", "payload", "action"),
    *("catch_up", "window", "grace", "max_catch_up", "spread", "recurrence"),
    *("retry", "title", "description", "runbook_url"),
)
_PROVENANCE = (
    "source",
    "created_by",
    "created_via",
    "created_at",
    "updated_at",
    "last_occurrence",
    "fire_at",
)
_FAILURE = ("attempts", "last_error", "parked_at")


def print_schedule(row: Row, as_json: bool, **extra: object) -> None:
    """`extra` is added to the JSON; its `outcome` is also the first word of the text."""
    if as_json:
        print_json({**extra, **schedule_json(row)})
        return
    outcome = extra.get("outcome")
    if outcome is not None:
        suffix = " (deduped: it was there already)" if extra.get("deduped") else ""
        typer.echo(f"{outcome} schedule {printable(title(row['owner'], row['name']))}{suffix}")
    for key, value in _lines(row):
        typer.echo(f"  {key:<12} {printable(value)}")


def schedule_json(row: Row) -> dict[str, Any]:
    fields: dict[str, Any] = {key: row[key] for key in _CONTENT}
    fields["tz"] = tz_of(row)
    fields["next_at"] = row["nominal_at"]
    fields |= {key: row[key] for key in _PROVENANCE}
    if row["attempts"]:
        fields |= {key: row[key] for key in _FAILURE}
    if row.get("last_result") is not None:
        fields["last_result"] = result_json(row["last_result"])
    return {**fields, "id": row["id"]}


def recurrence_text(row: Row) -> str:
    return parse_spec(row["recurrence"]).describe()


def _lines(row: Row) -> list[tuple[str, str]]:
    lines = [
        ("name", row["name"]),
        ("owner", row["owner"] or "none"),
        ("status", "parked" if row["parked_at"] else row["status"]),
        ("recurrence", recurrence_text(row)),
    ]
    lines += [
        (key, compact(row["recurrence"][key])) for key in ("dtstart", "exdates") if row["recurrence"].get(key)
    ]
    lines += [
        (key.replace("_", " "), row[key]) for key in ("title", "description", "runbook_url") if row[key]
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
        *([("retry", compact(row["retry"]))] if row["retry"] is not None else []),
        ("catch up", row["catch_up"]),
        ("generation", str(row["generation"])),
        ("created", f"by {row['created_by']} via {row['created_via']} at {utc_text(row['created_at'])}"),
    ]
    if row.get("last_result") is not None:
        lines.append(("last result", result_text(row["last_result"])))
    if row["last_error"]:
        lines.append(("error", f"{row['last_error']} (failed {row['attempts']} times)"))
    return lines
