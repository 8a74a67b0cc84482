"""The truth table of heartbeats, as data that every shell can run."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import yaml

from rules.documents.load.calendars import Calendars
from schemas.documents import CalendarDocument, HeartbeatDocument
from schemas.wire.check_in import CheckIn

_TABLE = Path(__file__).with_name("truth_table.yaml")
_CALENDARS = [
    {"name": "holidays", "yearly": ["12-25", "01-01"]},
    {"name": "business-days", "weekdays": ["mon", "tue", "wed", "thu", "fri"], "none_of": ["holidays"]},
]
NAME = "job"


class CheckInAt(NamedTuple):
    at: datetime
    check_in: CheckIn


class GapAt(NamedTuple):
    at: datetime
    ended_at: datetime


class HeartbeatCase(NamedTuple):
    title: str
    document: HeartbeatDocument
    begins: datetime
    inputs: tuple[CheckInAt | GapAt, ...]
    until: datetime
    transitions: list[tuple[datetime, str, str]]
    """The instant, the transition and the cause, which is empty for a resolution."""


def cases() -> list[HeartbeatCase]:
    return [_case(entry) for entry in yaml.safe_load(_TABLE.read_text())]


def calendars() -> list[CalendarDocument]:
    return [CalendarDocument.model_validate(calendar) for calendar in _CALENDARS]


def _case(entry: dict[str, Any]) -> HeartbeatCase:
    document = HeartbeatDocument.model_validate({"name": NAME, **entry["heartbeat"]})
    resolved = Calendars(calendars()).resolve(document)
    assert isinstance(resolved, HeartbeatDocument)
    zone = ZoneInfo(document.tz)
    return HeartbeatCase(
        entry["case"],
        resolved,
        _instant(str(entry["begins"]), zone)[0],
        tuple(_input(text, zone) for text in entry.get("inputs", ())),
        _instant(str(entry["until"]), zone)[0],
        [_transition(text, zone) for text in entry["transitions"]],
    )


def _instant(text: str, zone: ZoneInfo) -> tuple[datetime, list[str]]:
    day, time, *rest = text.split()
    instant = datetime.fromisoformat(f"{day}T{time}")
    if rest[:1] == ["Z"]:
        return instant.replace(tzinfo=ZoneInfo("UTC")), rest[1:]
    return instant.replace(tzinfo=zone).astimezone(ZoneInfo("UTC")), rest


def _input(text: str, zone: ZoneInfo) -> CheckInAt | GapAt:
    at, rest = _instant(text, zone)
    if rest[0] == "gap":
        return GapAt(at, _instant(" ".join(rest[2:]), zone)[0])
    if rest[0] == "exit":
        code = int(rest[1])
        return CheckInAt(at, CheckIn("fail" if code else "success", "", code))
    assert rest[0] in ("start", "success", "fail")
    return CheckInAt(at, CheckIn(rest[0], rest[1] if len(rest) > 1 else ""))  # type: ignore[arg-type]


def _transition(text: str, zone: ZoneInfo) -> tuple[datetime, str, str]:
    at, rest = _instant(text, zone)
    return at, rest[0], rest[1] if len(rest) > 1 else ""


def in_steps(begins: datetime, until: datetime, step: timedelta) -> list[datetime]:
    """Instants at which a shell may pass the time."""
    count = (until - begins) // step
    return [begins + number * step for number in range(1, count + 1)]
