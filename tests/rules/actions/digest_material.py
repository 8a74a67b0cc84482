"""Alarms, series and runs of a day, for digests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from rules.actions.steps.digest_results import DigestMaterial

UNTIL = datetime(2026, 3, 3, 8, 0, tzinfo=UTC)
SINCE = UNTIL - timedelta(days=1)


def alarm(rule: str, owner: str, opened: float, resolved: float | None = None, **more: Any) -> dict[str, Any]:
    """An alarm that opened and resolved some hours after the beginning of the period."""
    return {
        "id": f"{rule}-{owner}-{opened}",
        "rule": rule,
        "owner": owner,
        "severity": 4,
        "state": "open" if resolved is None else "resolved",
        "since": SINCE + timedelta(hours=opened),
        "opened_at": SINCE + timedelta(hours=opened),
        "resolved_at": None if resolved is None else SINCE + timedelta(hours=resolved),
        "acknowledged_at": None,
        "acknowledged_by": "",
        "snoozed": False,
        "payload": {"message": f"{rule} of {owner}", "labels": {"site": "ams"}, "key": "k"},
        **more,
    }


def run(rule: str, error: str) -> dict[str, Any]:
    at = SINCE + timedelta(hours=2)
    return {
        "id": "r",
        "name": "notify-ops",
        "rule": rule,
        "owner": "db-1",
        "state": "failed",
        "ended_at": at,
        "error": error,
    }


MATERIAL = DigestMaterial(
    SINCE,
    UNTIL,
    alarms=[
        alarm(
            "disk",
            "db-1",
            1,
            3,
            acknowledged_at=SINCE + timedelta(hours=1, minutes=10),
            acknowledged_by="ann",
        ),
        alarm(
            "disk",
            "db-1",
            5,
            6,
            acknowledged_at=SINCE + timedelta(hours=5, minutes=20),
            acknowledged_by="bob",
        ),
        alarm("disk", "db-2", 20, None),
        # It began before the period.
        alarm("cpu", "web-1", -10, 4, severity=6),
    ],
    stale_series=[{"owner": "db-9", "key": "load", "value": 3, "stale_since": SINCE, "labels": {}}],
    dead_runs=[run("notify:disk:ops", "HTTP 500"), run("nightly", "HTTP 404")],
)
