"""An event as a line of the console: its kind, what it concerns, a sentence, and where it leads. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from rules.alarms.explain import TRANSITION_TEXTS
from schemas.values.severities import level_name
from schemas.wire.event_facts import is_manual
from timers.time_text import duration_text, utc_text
from tocsin.console.filters import name_of
from tocsin.core.instant import parse_instant
from tocsin.core.printable import plain_json, printable

_LONGEST = 140


class EventLine(NamedTuple):
    seq: int
    at: Any
    kind: str
    """`fired`, `missed`, `alarm`, `good` (resolved) or `event`: its colour."""
    label: str
    name: str
    text: str
    path: str
    owner: str


def event_lines(rows: Iterable[Mapping[str, Any]]) -> list[EventLine]:
    return [event_line(row) for row in rows]


def event_line(row: Mapping[str, Any]) -> EventLine:
    name = name_of(row["owner"], row["schedule"] or row["rule"] or row["action"])
    kind, label, text = _words(row)
    path = f"/alarms/{row['alarm_id']}" if row["alarm_id"] is not None else ""
    return EventLine(
        row["seq"],
        row["recorded_at"],
        kind,
        label,
        printable(name),
        _cut(printable(text)),
        path,
        row["owner"],
    )


def _words(row: Mapping[str, Any]) -> tuple[str, str, str]:
    payload = row["payload"]
    if row["type"] in TRANSITION_TEXTS and row["alarm_id"] is not None:
        return _transition(row)
    if row["type"] == "schedule-missed":
        return "missed", "missed", str(payload.get("reason") or payload.get("message") or _plain(payload))
    if row["origin"] == "scheduled":
        if is_manual(row["origin"], row["id"], row["correlation_id"]):
            return "fired", "run by hand", _plain(payload)
        late = row["recorded_at"] - (row["fire_at"] or row["ts"])
        return "fired", "fired", f"{duration_text(max(late, timedelta(0)))} late"
    return "event", row["type"], _plain(payload)


def _transition(row: Mapping[str, Any]) -> tuple[str, str, str]:
    payload, text = row["payload"], TRANSITION_TEXTS[row["type"]]
    if row["type"] == "alarm-opened" and row["severity"]:
        text = f"{text}, {level_name(row['severity'])}"
    until = payload.get("until")
    parts = (
        payload.get("who") and f"by {payload['who']}",
        until and f"until {utc_text(parse_instant(until))}",
        payload.get("note"),
        payload.get("message"),
    )
    kind = (
        "good" if row["type"] == "alarm-resolved" else "alarm" if row["type"] == "alarm-opened" else "event"
    )
    return kind, text, "  ".join(str(part) for part in parts if part)


def _plain(payload: Mapping[str, Any]) -> str:
    shown = {key: value for key, value in payload.items() if not isinstance(value, dict | list)}
    return plain_json(json.dumps(shown, ensure_ascii=False, default=str)) if shown else ""


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
