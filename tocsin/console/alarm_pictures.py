"""Pictures of alarms: severities over a day, lanes of several alarms, and the values around one. Pure.

The states of an alarm follow from its columns: pending from `since` until it opened, then open, and
acknowledged from the first acknowledgement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from schemas.values.severities import level_name, severities
from tocsin.api.v1.alarms import AlarmView
from tocsin.console.filters import name_of
from tocsin.pictures.chart import ChartLevel, Point, value_chart
from tocsin.pictures.figure import Picture
from tocsin.pictures.lanes import PictureLane, Span, lanes_picture
from tocsin.pictures.time_axis import TimeView
from tocsin.pictures.tones import severity_tone

DAY = timedelta(days=1)
_THRESHOLD = re.compile(r"(above|below) (-?[0-9]+(?:\.[0-9]+)?)")
_MARGIN = timedelta(minutes=10)
_LONGEST = timedelta(days=7)


def severities_of_day(rows: Iterable[Mapping[str, Any]], now: datetime, zone: ZoneInfo) -> Picture:
    """One lane for each severity that had an alarm, the most severe first."""
    spans: dict[int, list[Span]] = {}
    start = now - DAY
    for row in rows:
        level = row["severity"]
        span = Span(
            max(row["opened_at"], start),
            row["resolved_at"] or now,
            severity_tone(level, len(severities())),
            name_of(row["owner"], row["event_rule"]),
            row["resolved_at"] is None,
        )
        spans.setdefault(level, []).append(span)
    lanes = [
        PictureLane(level_name(level), sorted(found), href=f"/alarms?state=all&severity={level_name(level)}")
        for level, found in sorted(spans.items(), reverse=True)
    ]
    return lanes_picture(lanes, TimeView(start, now, zone, now), title="open alarms of the last day")


def alarm_lanes(alarms: Sequence[AlarmView], now: datetime, zone: ZoneInfo) -> Picture:
    """One lane for each alarm, from the first that began, at most seven days ago."""
    first = min((alarm.since for alarm in alarms), default=now - timedelta(hours=1))
    start = max(min(first, now - timedelta(minutes=5)), now - _LONGEST)
    lanes = [
        PictureLane(
            name_of(alarm.owner, alarm.rule),
            [span for span in alarm_spans(alarm, now) if span.end > start],
            href=f"/alarms/{alarm.id}",
        )
        for alarm in alarms
    ]
    legend = (("pending", "pending"), ("open", "open"), ("acknowledged", "acknowledged"))
    return lanes_picture(
        lanes, TimeView(start, now, zone, now), title="these alarms over time", legend=legend
    )


def alarm_spans(alarm: AlarmView, now: datetime) -> list[Span]:
    end = alarm.resolved_at or now
    goes_on = alarm.resolved_at is None
    spans: list[Span] = []
    opened_at = alarm.opened_at
    if opened_at is None:
        return [Span(alarm.since, end, "pending", "pending", goes_on)]
    if alarm.since < opened_at:
        spans.append(Span(alarm.since, opened_at, "pending", "pending"))
    taken_at = alarm.acknowledged_at
    if taken_at is not None and opened_at <= taken_at < end:
        spans.append(Span(opened_at, taken_at, "open", "open"))
        spans.append(Span(taken_at, end, "acknowledged", "acknowledged", goes_on))
    else:
        spans.append(Span(opened_at, end, "open", "open", goes_on))
    return spans


def view_of(alarm: AlarmView, now: datetime, zone: ZoneInfo) -> TimeView:
    """The time around an alarm: before it began, and after its end."""
    end = min((alarm.resolved_at or now) + _MARGIN, now)
    start = max(alarm.since - max(_MARGIN, (end - alarm.since) / 4), end - _LONGEST)
    return TimeView(start, end, zone, now if alarm.resolved_at is None else None)


def alarm_chart(alarm: AlarmView, points: Sequence[Point], view: TimeView) -> Picture:
    """The values of the series, the threshold, and the states of the alarm."""
    found = _THRESHOLD.search(str(alarm.payload.get("threshold") or ""))
    levels = [ChartLevel(float(found[2]), f"fires {found[0]}")] if found else []
    return value_chart(
        points,
        view,
        title=f"{alarm.payload.get('key') or alarm.instance} of {alarm.owner}",
        unit=str(alarm.payload.get("unit") or ""),
        levels=levels,
        bands=alarm_spans(alarm, view.end),
    )
