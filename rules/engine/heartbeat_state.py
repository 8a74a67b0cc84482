"""State of one heartbeat and owner: the expected check-in, and the runs that have started.

Guarantee: immutable, and plain JSON when stored; `from_json(to_json(state)) == state`. Its size is
bounded: at most `MAX_RUNS` runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tocsin.core.instant import parse_instant

MAX_RUNS = 100
"""Runs that are remembered; the oldest is forgotten."""


class HeartbeatRun(NamedTuple):
    """A run that has started and not ended."""

    started_at: datetime
    due_at: datetime | None
    """When it has run for too long; None: it was reported, or nothing is expected after it."""
    is_expected: bool
    """Its start was the check-in of an expected time, so its end is not that of another one."""


class HeartbeatState(NamedTuple):
    begun_at: datetime
    """When the heartbeat, with its present times, began to be expected."""
    expected_at: datetime | None = None
    """The expected time that no check-in has met; None if none follows."""
    opens_at: datetime | None = None
    """A check-in from here on counts for `expected_at`."""
    due_at: datetime | None = None
    """When the check-in is late."""
    runs: Mapping[str, HeartbeatRun] = {}
    last_at: datetime | None = None
    last_status: str = ""
    last_success_at: datetime | None = None
    last_duration_s: float | None = None
    missed: int = 0
    """Expected times in a row without a check-in."""
    gap_began_at: datetime | None = None
    gap_ended_at: datetime | None = None
    """The arrival gap since the last check-in that replaced an expected time."""

    @property
    def next_due_at(self) -> datetime | None:
        """When the state changes although nothing arrives."""
        dues = [run.due_at for run in self.runs.values() if run.due_at is not None]
        if self.due_at is not None:
            dues.append(self.due_at)
        return min(dues, default=None)

    def to_json(self) -> dict[str, Any]:
        return {
            **{name: _text(value) for name, value in self._asdict().items() if name not in ("runs",)},
            "runs": {
                id: [_text(run.started_at), _text(run.due_at), run.is_expected]
                for id, run in self.runs.items()
            },
        }

    @staticmethod
    def from_json(stored: Mapping[str, Any]) -> HeartbeatState:
        runs = {
            id: HeartbeatRun(parse_instant(started_at), _instant(due_at), is_expected)
            for id, (started_at, due_at, is_expected) in stored.get("runs", {}).items()
        }
        instants = {name: _instant(value) for name, value in stored.items() if name.endswith("_at") and value}
        others = {name: stored[name] for name in ("last_status", "last_duration_s", "missed")}
        return HeartbeatState(**{**others, **instants, "runs": runs})


def _text(value: Any) -> Any:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value


def _instant(text: str | None) -> datetime | None:
    return None if text is None else parse_instant(text)
