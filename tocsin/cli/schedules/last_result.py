"""What came of the action that a schedule carries itself: its newest run, beside the schedule's own facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tocsin.cli.output import duration_text

if TYPE_CHECKING:
    from tocsin.core.db import Connection


async def with_results(connection: Connection, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with `last_result`: None where there is no action, or where it has not run yet."""
    from rules.actions.history import read_last_results

    carrying = [(row["owner"], row["name"]) for row in rows if row["action"]]
    found = await read_last_results(connection, carrying) if carrying else {}
    return [{**row, "last_result": _facts(found.get((row["owner"], row["name"])))} for row in rows]


def result_text(result: dict[str, Any] | None) -> str:
    """`completed in 340 ms`, `failed after 5 attempts: 503`."""
    if result is None:
        return ""
    if result["took"] is None:
        return str(result["state"])
    attempts = f" after {result['attempts']} attempts" if result["attempts"] > 1 else ""
    error = f": {result['error']}" if result["error"] else ""
    return f"{result['state']} in {duration_text(result['took'])}{attempts}{error}"


def result_facts(result: dict[str, Any] | None) -> dict[str, Any] | None:
    """For JSON."""
    if result is None:
        return None
    took = result["took"]
    rest = {key: value for key, value in result.items() if key != "took"}
    return {**rest, "took_ms": None if took is None else round(took.total_seconds() * 1000)}


def _facts(row: dict[str, Any] | None) -> dict[str, Any] | None:
    if row is None:
        return None
    took = None if row["ended_at"] is None else row["ended_at"] - row["started_at"]
    kept = {key: row[key] for key in ("id", "state", "attempts", "error", "started_at", "ended_at")}
    return {**kept, "took": took}
