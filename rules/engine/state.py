"""State of one rule for one owner and instance.

Guarantee: a state is immutable, and plain JSON when stored; `from_json(to_json(state)) == state`.
Its size is bounded: a few facts per series that fires and, for rules that need earlier values, the
previous value or at most `windows.BUCKETS` buckets per series.

A timer that the clock fires changes the stored state by its top-level keys alone:

    'open':  phase = "open", last_opened_at = due_at, due_at = null
    'clear': phase = "ok", alarm = null, resolution = null, due_at = null, and firing_series keeps
             the series that are not clear: they fire, but not yet for long enough
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from rules.engine.effects import Alarm, Cause
from rules.engine.heartbeat_state import HeartbeatState
from rules.engine.inputs import Value
from rules.engine.windows import Buckets
from tocsin.core.instant import parse_instant

Phase = Literal["ok", "pending", "open", "clearing"]


class FiringSeries(NamedTuple):
    """A series that fires. One that is clear again stays here until `clear_due_at`."""

    since: datetime
    due_at: datetime
    cause: Cause
    value: Value | None
    labels: dict[str, str]
    age_s: float = 0.0
    """The time since the last datapoint when the series became stale; 0 if a datapoint arrived."""
    event_id: str = ""
    event_type: str = ""
    reevaluated_at: datetime | None = None
    """`WentStale.reevaluated_at`."""
    clear_due_at: datetime | None = None
    severity: int = 0
    first_value: Value | None = None
    """The value with which it began to fire; `value` is the last one before the alarm opens."""
    payload: dict[str, Any] = {}  # noqa: RUF012
    """The payload of the event."""
    is_resolved: bool = False
    """An operator resolved its alarm; it opens no other one before it was clear."""


class Track(NamedTuple):
    """Earlier values of a series, or earlier events, for a rule that needs them."""

    value: Value
    at: datetime
    ts: datetime
    buckets: Buckets = ()
    """Of a window; of a `count` of events: their instants in microseconds."""
    resets: float = 0.0
    """What a counter had reached before each of its resets, added up."""
    fired: str = ""
    """Of `samples`: a 1 or 0 for each of the last datapoints."""
    labels: dict[str, str] = {}  # noqa: RUF012
    """Of a rule with a window, which may fire without a datapoint."""


FiringSeriesByKey = Mapping[str, FiringSeries]
Tracks = Mapping[str, Track]
_NONE: dict[str, Any] = {}


class RuleState(NamedTuple):
    phase: Phase = "ok"
    alarm: Alarm | None = None
    """Pending, open or clearing; None if the phase is ok."""
    due_at: datetime | None = None
    """The end of the sustain: a pending alarm opens, a clearing one resolves."""
    resolution: dict[str, Any] | None = None
    """The payload of the `alarm-resolved` event, while clearing."""
    last_opened_at: datetime | None = None
    last_since: datetime | None = None
    repeats: int = 0
    """The number of alarms that began at `last_since` before the last one."""
    fingerprint: str = ""
    """`Rule.fingerprint` of the rule that made the state."""
    firing_series: FiringSeriesByKey = _NONE
    tracks: Tracks = _NONE
    join_at: datetime | None = None
    """When a series joins or leaves the alarm although nothing arrives."""
    expire_at: datetime | None = None
    """When the next value leaves a window."""
    heartbeat: HeartbeatState | None = None
    """Of a heartbeat: the expected check-in and the runs."""

    @property
    def recheck_at(self) -> datetime | None:
        """When the rule must be evaluated although nothing arrives; None: only when something does."""
        if self.heartbeat is not None:
            return self.heartbeat.next_due_at
        if self.join_at is None or self.expire_at is None:
            return self.join_at or self.expire_at
        return min(self.join_at, self.expire_at)

    def tracking(
        self, key: str, track: Track, fingerprint: str, expire_at: datetime | None = None
    ) -> RuleState:
        """The state with another track; called for every datapoint of a rule that needs tracks."""
        tracks = {**self.tracks, key: track}
        return RuleState._make(
            (*self[:7], fingerprint, self.firing_series, tracks, self.join_at, expire_at, None)
        )

    def expiring(self, expire_at: datetime | None) -> RuleState:
        """The state with another `expire_at`; called for every datapoint of a rule with a window."""
        return self if expire_at == self.expire_at else RuleState._make((*self[:11], expire_at, None))

    def to_json(self) -> dict[str, Any]:
        return {
            "phase": self.phase,
            "alarm": None if self.alarm is None else _alarm_json(self.alarm),
            "due_at": _text(self.due_at),
            "resolution": self.resolution,
            "last_opened_at": _text(self.last_opened_at),
            "last_since": _text(self.last_since),
            "repeats": self.repeats,
            "fingerprint": self.fingerprint,
            "join_at": _text(self.join_at),
            "expire_at": _text(self.expire_at),
            "firing_series": {key: _firing_series_json(firing) for key, firing in self.firing_series.items()},
            "tracks": {key: _track_json(track) for key, track in self.tracks.items()},
            **({} if self.heartbeat is None else {"heartbeat": self.heartbeat.to_json()}),
        }

    @staticmethod
    def from_json(stored: Mapping[str, Any]) -> RuleState:
        """The state of stored JSON. Missing keys have their defaults: `{}` is `BLANK`."""
        alarm, heartbeat = stored.get("alarm"), stored.get("heartbeat")
        return RuleState(
            phase=stored.get("phase", "ok"),
            alarm=None if alarm is None else _alarm(alarm),
            due_at=_instant(stored.get("due_at")),
            resolution=stored.get("resolution"),
            last_opened_at=_instant(stored.get("last_opened_at")),
            last_since=_instant(stored.get("last_since")),
            repeats=stored.get("repeats", 0),
            fingerprint=stored.get("fingerprint", ""),
            firing_series={
                key: _firing_series(value) for key, value in stored.get("firing_series", {}).items()
            },
            tracks={key: _track(track) for key, track in stored.get("tracks", {}).items()},
            join_at=_instant(stored.get("join_at")),
            expire_at=_instant(stored.get("expire_at")),
            heartbeat=None if heartbeat is None else HeartbeatState.from_json(heartbeat),
        )


BLANK = RuleState()
"""The state of a rule without any input of an owner. It need not be stored."""


def _alarm_json(alarm: Alarm) -> dict[str, Any]:
    return {
        "id": str(alarm.id),
        "rule": alarm.rule,
        "owner": alarm.owner,
        "severity": alarm.severity,
        "since": _text(alarm.since),
        "payload": alarm.payload,
        "instance": alarm.instance,
        "lead": alarm.lead,
        "series": list(alarm.series),
        "cause": alarm.cause,
        "changes": alarm.changes,
        "source_event_id": None if alarm.source_event_id is None else str(alarm.source_event_id),
    }


def _alarm(stored: Mapping[str, Any]) -> Alarm:
    source = stored["source_event_id"]
    return Alarm(
        id=uuid.UUID(stored["id"]),
        rule=stored["rule"],
        owner=stored["owner"],
        severity=stored["severity"],
        since=parse_instant(stored["since"]),
        payload=stored["payload"],
        instance=stored.get("instance", ""),
        lead=stored.get("lead", ""),
        series=tuple(stored.get("series", ())),
        cause=stored.get("cause", "fired"),
        changes=stored.get("changes", 0),
        source_event_id=None if source is None else uuid.UUID(source),
    )


def _firing_series_json(firing: FiringSeries) -> dict[str, Any]:
    return {
        **firing._asdict(),
        "since": _text(firing.since),
        "due_at": _text(firing.due_at),
        "labels": firing.labels,
        "reevaluated_at": _text(firing.reevaluated_at),
        "clear_due_at": _text(firing.clear_due_at),
    }


def _firing_series(stored: Mapping[str, Any]) -> FiringSeries:
    return FiringSeries(
        **{
            **stored,
            "since": parse_instant(stored["since"]),
            "due_at": parse_instant(stored["due_at"]),
            "reevaluated_at": _instant(stored.get("reevaluated_at")),
            "clear_due_at": _instant(stored["clear_due_at"]),
        }
    )


def _track_json(track: Track) -> list[Any]:
    buckets = [list(bucket) for bucket in track.buckets]
    return [
        *(track.value, _text(track.at), _text(track.ts), buckets),
        *(track.resets, track.fired, track.labels),
    ]


def _track(stored: list[Any]) -> Track:
    value, at, ts, buckets, resets, fired, labels = stored
    return Track(
        _value(value),
        parse_instant(at),
        parse_instant(ts),
        tuple(tuple(bucket) for bucket in buckets),
        resets,
        fired,
        labels,
    )


def _value(value: Value) -> Value:
    """A number that conditions can read.

    Postgres writes 1e23 with all its digits, and CEL has no such integer.
    """
    return float(value) if isinstance(value, int) and abs(value) >= 2**63 else value


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else instant.astimezone(UTC).isoformat()


def _instant(text: str | None) -> datetime | None:
    return None if text is None else parse_instant(text)
