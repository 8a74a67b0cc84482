"""The lines of a recording: each kind of fact as JSON, and back.

Guarantee: what is decoded is what was encoded. Decoding raises `ValueError` or its like on anything that is not such a
line; numbers are finite, and payloads have the shape that conditions can read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import accumulate, repeat
from math import isfinite
from operator import sub
from typing import Any
from uuid import UUID

from rules.engine import Arrival
from rules.replay.backtest.recording.model import (
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
from schemas.values.json_shape import check_json_shape
from tocsin.core.instant import EPOCH, instant_of, microseconds_of

FORMAT = "tocsin-recording"
VERSION = 2


def story_lines(story: Story) -> Iterator[dict[str, Any]]:
    yield {
        "format": FORMAT,
        "version": VERSION,
        "start": microseconds_of(story.start),
        "since": microseconds_of(story.since),
        "until": microseconds_of(story.until),
        "whole": story.is_whole,
    }
    for version in story.versions:
        yield {"document": version}
    for apply in story.applies:
        yield {"apply": [apply.seq, microseconds_of(apply.at), microseconds_of(apply.recorded_at)]}
    for switch in story.switches:
        yield {"switch": [*switch[:4], _us_or_none(switch.watermark)]}
    for horizon in story.horizons:
        yield {"horizon": [*horizon[:2], _us_or_none(horizon.until)]}
    yield {"rules": "end"}


STORY: dict[str, Callable[..., Any]] = {
    "document": Version,
    "apply": lambda seq, at, recorded_at: Apply(seq, instant_of(at), instant_of(recorded_at)),
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
                microseconds_of(one.since),
                microseconds_of(one.opened_at),
                one.payload,
                one.source_event_id and str(one.source_event_id),
                [event_line(act) for act in one.acts],
            ]
            for one in begins.open
        ],
        "last": [
            [one.key, microseconds_of(one.arrived_at), one.value, microseconds_of(one.ts), one.labels]
            for one in begins.last
        ],
    }


def owner_begins(line: dict[str, Any]) -> OwnerBegins:
    owner = _text(line["owner"])
    held = [
        OpenAlarm(
            rule,
            UUID(id),
            severity,
            instant_of(since),
            instant_of(at),
            payload,
            _uuid_or_none(source),
            tuple(_recorded_event(act, owner) for act in acts),
        )
        for rule, id, severity, since, at, payload, source, acts in line["open"]
    ]
    last = [
        LastSeen(key, instant_of(at), _checked(value), instant_of(ts), labels)
        for key, at, value, ts, labels in line["last"]
    ]
    return OwnerBegins(owner, int(line["partition"]), held, last)


def datapoints_line(rows: Sequence[Arrival]) -> list[Any]:
    """Column by column: that takes a fifth of the space, and half of the time to read."""
    at = [microseconds_of(one.at) for one in rows]
    ages = [0 if one.ts == one.at else us - microseconds_of(one.ts) for us, one in zip(at, rows, strict=True)]
    series: dict[tuple[Any, ...], int] = {}
    which = [series.setdefault((one.key, *one.labels.items()), len(series)) for one in rows]
    return [
        "d",
        _steps(at),
        _steps([one.seq for one in rows]),
        [[key, dict(labels)] for key, *labels in series],
        which if len(series) > 1 else None,
        [one.value for one in rows],
        ages if any(ages) else None,
    ]


def _arrivals(line: list[Any], owner: str) -> Arrivals:
    _, steps, seqs, series, which, values, ages = line
    us = list(accumulate(steps))
    if which is None:
        ((key, labels),) = series
        keys, of_keys = [key] * len(us), [labels] * len(us)
    else:
        keys = [series[place][0] for place in which if place >= 0]
        of_keys = [series[place][1] for place in which]
    measured = us if ages is None else list(map(sub, us, ages))
    return Arrivals(
        arrival_rows(us, list(accumulate(seqs)), [owner] * len(us), keys, values, measured, of_keys)
    )


def arrival_rows(
    at: list[int],
    seqs: list[int],
    owners: list[str],
    keys: list[str],
    values: list[Any],
    ts: list[int],
    labels: list[dict[str, str]],
) -> list[Arrival]:
    """Of columns of equal length, with instants in microseconds. What is done for every datapoint is done in C."""
    if set(map(type, values)) != {float} or not all(map(isfinite, values)):
        for value in values:
            _checked(value)
    arrived_at = _instants(at)
    measured_at = arrived_at if ts is at else _instants(ts)
    rows = zip(arrived_at, seqs, owners, keys, values, measured_at, labels, strict=True)
    return list(map(_ARRIVAL, rows))


_ARRIVAL: Callable[[tuple[Any, ...]], Arrival] = partial(tuple.__new__, Arrival)


def _steps(numbers: list[int]) -> list[int]:
    """The first, and by how much each is greater than the one before."""
    return list(map(sub, numbers, [0, *numbers]))


def _instants(us: list[int]) -> list[datetime]:
    return list(map(EPOCH.__add__, map(timedelta, repeat(0), repeat(0), us)))


def event_line(one: RecordedEvent) -> list[Any]:
    told = one._asdict() | {
        "id": str(one.id),
        "ts": microseconds_of(one.ts),
        "recorded_at": microseconds_of(one.recorded_at),
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
        ts=instant_of(told["ts"]),
        recorded_at=instant_of(told["recorded_at"]),
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
    return ["v", one.key, one.kind, microseconds_of(one.at), one.value]


def _staleness(line: list[Any], owner: str) -> Staleness:
    _, key, verdict, at, value = line
    return Staleness(owner, key, verdict, instant_of(at), value)


def part_of(line: Any, owner: str) -> Part:
    """What a line behind the rules says, of an owner that was named before."""
    if isinstance(line, dict):
        return owner_begins(line)
    kind = line[0]
    if kind == "d":
        return _arrivals(line, owner)
    if kind == "e":
        return Events([_recorded_event(line, owner)])
    if kind == "v":
        return Verdicts([_staleness(line, owner)])
    raise ValueError(kind)


def encoded(told: object) -> bytes:
    return _encode(told).encode() + b"\n"


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def _checked(value: Any) -> Any:
    if not isinstance(value, int | float | str):
        raise ValueError(value)
    check_json_shape(value)
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    return value


def _us_or_none(at: datetime | None) -> int | None:
    return None if at is None else microseconds_of(at)


def _instant_or_none(us: int | None) -> datetime | None:
    return None if us is None else instant_of(us)


def _uuid_or_none(text: str | None) -> UUID | None:
    return None if text is None else UUID(text)
