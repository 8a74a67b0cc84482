"""The check of the doctor about heartbeats: how many are expected, and which are not well.

Guarantee: never red. A job that is late has an alarm of its own. A check-in that no document expects is
listed, because a mistyped name would watch nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rules.alarms.heartbeats import HeartbeatRow, list_heartbeats, list_unknown_heartbeats
from tocsin.core.db import Connection
from tocsin.doctor.checks import Finding

_SHOWN = 5
_BAD = ("late", "failed", "overrun", "held")


async def check_heartbeats(connection: Connection) -> Finding:
    _, rows = await list_heartbeats(connection)
    return heartbeat_finding(rows, await list_unknown_heartbeats(connection))


def heartbeat_finding(rows: Sequence[HeartbeatRow], unknown: Sequence[tuple[str, str, datetime]]) -> Finding:
    text = f"{len(rows)} expected" if rows else "none expected"
    bad = [f"{row.name} of {row.owner} is {row.status}" for row in rows if row.status in _BAD]
    if bad:
        text += f"; {_listed(bad)}"
    if not unknown:
        return Finding("info" if bad else "ok", "heartbeats", text)
    names = _listed([f"{name} of {owner}" for name, owner, _ in unknown])
    return Finding(
        "info",
        "heartbeats",
        f"{text}; check-ins that no document expects: {names}",
        "add a heartbeat document, or correct the name in the job",
    )


def _listed(texts: Sequence[str]) -> str:
    more = ", ..." if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more
