"""The report of a backtest as a page shows it: pages per day before and after, and both in lanes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from tocsin.pictures.compare import ComparedAlarm, CompareLane, Period, compare_lanes
from tocsin.pictures.time_axis import TimeView

Json = Mapping[str, Any]


def replay_facts(report: Json, zone: ZoneInfo | None = None) -> dict[str, Any]:
    """What `parts/rule_replay.html` shows; lanes with differences first."""
    rules = report["rules"]
    lanes = sorted(_lanes([*report["changes"], *report["unchanged"]]), key=_most_changed)
    view = TimeView(_instant(report["since"]), _instant(report["until"]), zone or ZoneInfo("UTC"))
    return {
        "error": "",
        "alarms": report["alarms"],
        "pages_then": sum(rule["notifications_then"] for rule in rules),
        "pages_now": sum(rule["notifications_now"] for rule in rules),
        "rules": rules,
        "datapoints": report["datapoints"],
        "events": report["events"],
        "picture": compare_lanes(lanes, view, title="alarms then and now"),
    }


def _lanes(pairs: Sequence[Json]) -> list[CompareLane]:
    lanes: dict[str, list[ComparedAlarm]] = {}
    for pair in pairs:
        label = f"{pair['rule']} of {pair['owner']}" if pair["owner"] else pair["rule"]
        alarm = ComparedAlarm(
            pair["kind"],
            _period(pair["then"], pair["then_until"], pair["message"]),
            _period(pair["now"], pair["now_until"], pair["message"]),
        )
        lanes.setdefault(label, []).append(alarm)
    return [CompareLane(label, alarms) for label, alarms in lanes.items()]


def _period(start: str | None, end: str | None, message: str) -> Period | None:
    return None if start is None or end is None else Period(_instant(start), _instant(end), message)


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _most_changed(lane: CompareLane) -> tuple[int, str]:
    return -sum(alarm.change != "same" for alarm in lane.alarms), lane.label
