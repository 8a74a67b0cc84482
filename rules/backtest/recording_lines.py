"""The lines of a recording: each kind of fact as JSON, and back.

Guarantee: what is decoded is what was encoded. Decoding raises `ValueError` or its like on anything that is not such a
line; numbers are finite, and payloads have the shape that conditions can read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn
from uuid import UUID

from rules.backtest.facts import (
    Apply,
    Arrivals,
    Events,
    Horizon,
    LaneSwitch,
    LastSeen,
    OpenAlarm,
    OwnerBegins,
    Part,
    RecordedEvent,
    Staleness,
    Story,
    Verdicts,
    Version,
)
from rules.engine import Arrival
from schemas.json_shape import check_json_shape

FORMAT = "tocsin-recording"
VERSION = 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
_NO_LABELS: dict[str, str] = {}


def story_lines(story: Story) -> Iterator[dict[str, Any]]:
    yield {
        "format": FORMAT,
        "version": VERSION,
        "start": _us(story.start),
        "since": _us(story.since),
        "until": _us(story.until),
        "whole": story.is_whole,
    }
    for version in story.versions:
        yield {"document": version}
    for apply in story.applies:
        yield {"apply": [apply.seq, _us(apply.at), _us(apply.recorded_at)]}
    for switch in story.switches:
        yield {"switch": [*switch[:4], _us_or_none(switch.complete_until)]}
    for horizon in story.horizons:
        yield {"horizon": [*horizon[:2], _us_or_none(horizon.until)]}
    yield {"rules": "end"}


STORY: dict[str, Callable[..., Any]] = {
    "document": Version,
    "apply": lambda seq, at, recorded_at: Apply(seq, instant(at), instant(recorded_at)),
    "switch": lambda lane, partition, rules_seq, seq, until: LaneSwitch(
        lane, partition, rules_seq, seq, _instant_or_none(until)
    ),
    "horizon": lambda lane, partition, until: Horizon(lane, partition, _instant_or_none(until)),
}


def owner_line(begins: OwnerBegins) -> dict[str, Any]:
    return {
        "owner": begins.owner,
        "partition": begins.partition,
        "open": [
            [
                one.rule,
                str(one.id),
                one.severity,
                _us(one.since),
                _us(one.opened_at),
                one.payload,
                one.source_event_id and str(one.source_event_id),
            ]
            for one in begins.open
        ],
        "last": [[one.key, _us(one.arrived_at), one.value, _us(one.ts), one.labels] for one in begins.last],
    }


def owner_begins(line: dict[str, Any]) -> OwnerBegins:
    held = [
        OpenAlarm(rule, UUID(id), severity, instant(since), instant(at), payload, _uuid_or_none(source))
        for rule, id, severity, since, at, payload, source in line["open"]
    ]
    last = [
        LastSeen(key, instant(at), _checked(value), instant(ts), labels)
        for key, at, value, ts, labels in line["last"]
    ]
    return OwnerBegins(_text(line["owner"]), int(line["partition"]), held, last)


def datapoint_line(one: Arrival) -> list[Any]:
    line = ["d", _us(one.at), one.seq, one.key, one.value, _us(one.ts)]
    return [*line, one.labels] if one.labels else line


def _arrival(line: list[Any], owner: str) -> Arrival:
    """This runs for every datapoint; most values are floats, and many producers leave `ts` to the arrival."""
    if len(line) == 7:
        _, at, seq, key, value, ts, labels = line
    else:
        _, at, seq, key, value, ts = line
        labels = _NO_LABELS
    if type(value) is not float:
        _checked(value)
    arrived_at = _EPOCH + timedelta(0, 0, at)
    measured_at = arrived_at if ts == at else _EPOCH + timedelta(0, 0, ts)
    return Arrival(arrived_at, seq, owner, key, value, measured_at, labels)


def event_line(one: RecordedEvent) -> list[Any]:
    told = one._asdict() | {
        "id": str(one.id),
        "ts": _us(one.ts),
        "recorded_at": _us(one.recorded_at),
        "alarm_id": one.alarm_id and str(one.alarm_id),
        "correlation_id": str(one.correlation_id),
    }
    del told["owner"]
    return ["e", {name: value for name, value in told.items() if value not in ("", None)}]


def _recorded_event(line: list[Any], owner: str) -> RecordedEvent:
    _, told = line
    check_json_shape(told["payload"])
    return RecordedEvent(
        seq=int(told["seq"]),
        id=UUID(told["id"]),
        ts=instant(told["ts"]),
        recorded_at=instant(told["recorded_at"]),
        origin=_text(told["origin"]),
        type=_text(told["type"]),
        schedule=_text(told.get("schedule", "")),
        rule=_text(told.get("rule", "")),
        action=_text(told.get("action", "")),
        owner=owner,
        alarm_id=_uuid_or_none(told.get("alarm_id")),
        severity=told.get("severity"),
        correlation_id=UUID(told["correlation_id"]),
        payload=told["payload"],
    )


def verdict_line(one: Staleness) -> list[Any]:
    return ["v", one.key, one.verdict, _us(one.at), one.value]


def _staleness(line: list[Any], owner: str) -> Staleness:
    _, key, verdict, at, value = line
    return Staleness(owner, key, verdict, instant(at), value)


DECODERS: dict[str, Callable[..., Any]] = {
    "datapoints": _arrival,
    "events": _recorded_event,
    "verdicts": _staleness,
}
PARTS: dict[str, Callable[[list[Any]], Part]] = {
    "datapoints": Arrivals,
    "events": Events,
    "verdicts": Verdicts,
}


def encoded(told: object) -> bytes:
    return _encode(told).encode() + b"\n"


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(text)


loads = json.JSONDecoder(parse_constant=_refuse_constant).decode


def _checked(value: Any) -> Any:
    if not isinstance(value, int | float | str):
        raise ValueError(value)
    check_json_shape(value)
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    return value


def _us(at: datetime) -> int:
    return (at - _EPOCH) // _TICK


def instant(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)


def _us_or_none(at: datetime | None) -> int | None:
    return None if at is None else _us(at)


def _instant_or_none(us: int | None) -> datetime | None:
    return None if us is None else instant(us)


def _uuid_or_none(text: str | None) -> UUID | None:
    return None if text is None else UUID(text)
