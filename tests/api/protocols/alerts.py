"""Alerts as Prometheus posts them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from timers.working_set import database_now
from tocsin.core.db import Connection
from tocsin.core.instant import instant_text

AM = "/alertmanager/api/v2"


async def alert(connection: Connection, instance: str, ends: timedelta, **annotations: str) -> dict[str, Any]:
    now = await database_now(connection)
    return {
        "labels": {"alertname": "HighLoad", "instance": instance, "severity": "high"},
        "annotations": annotations,
        "startsAt": "2026-03-02T08:00:00Z",
        "endsAt": instant_text(now + ends),
    }
