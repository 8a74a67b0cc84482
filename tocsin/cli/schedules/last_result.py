"""The last result of a schedule: the newest run of the action that its document names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tocsin.cli.output import duration_text

if TYPE_CHECKING:
    from tocsin.core.db import Connection


async def with_last_results(connection: Connection, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with `last_result`: None without an action, or before its first run."""
    from rules.actions.history import read_last_results

    keys = [(row["owner"], row["name"]) for row in rows if row["action"]]
    results = await read_last_results(connection, keys) if keys else {}
    return [{**row, "last_result": _result(results.get((row["owner"], row["name"])))} for row in rows]


def result_text(result: dict[str, Any] | None) -> str:
    """`completed in 340 ms`, `failed in 1m40s after 5 attempts: 503`"""
    if result is None:
        return ""
    if result["took"] is None:
        return str(result["state"])
    attempts = f" after {result['attempts']} attempts" if result["attempts"] > 1 else ""
    error = f": {result['error']}" if result["error"] else ""
    return f"{result['state']} in {duration_text(result['took'])}{attempts}{error}"


def result_json(result: dict[str, Any] | None) -> dict[str, Any] | None:
    if result is None:
        return None
    took = result["took"]
    rest = {key: value for key, value in result.items() if key != "took"}
    return {**rest, "took_ms": None if took is None else round(took.total_seconds() * 1000)}


def _result(run: dict[str, Any] | None) -> dict[str, Any] | None:
    if run is None:
        return None
    took = None if run["ended_at"] is None else run["ended_at"] - run["started_at"]
    return {
        **{key: run[key] for key in ("id", "state", "attempts", "error", "started_at", "ended_at")},
        "took": took,
    }
