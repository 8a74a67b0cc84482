"""Outcomes of an attempt of a step. Steps return one, and `advance` takes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tocsin.core.records import NewEvent


@dataclass(frozen=True)
class Completed:
    """Success. A `branch` step sets `branch`: 0 for `then`, 1 for `else`. A step that appends an
    event sets `event`."""

    answer: Mapping[str, Any] = field(default_factory=dict)
    branch: int | None = None
    event: NewEvent | None = None


@dataclass(frozen=True)
class Failed:
    """Failure. `permanent`: another attempt would fail in the same way. `retry_after`: the shortest
    delay that the other side accepts."""

    error: str
    permanent: bool = False
    answer: Mapping[str, Any] = field(default_factory=dict)
    retry_after: timedelta | None = None


@dataclass(frozen=True)
class TimedOut:
    """Unknown result. Another attempt follows if one is left."""

    error: str


@dataclass(frozen=True)
class Paused:
    """The step waits: until an instant, for an event that meets `condition`, or for a report."""

    until: datetime | None
    condition: str | None = None
    answer: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Held:
    """The step was not performed: every open alarm of its run is suppressed. It is due again when a
    suppression ends."""

    held_by: tuple[str, ...]
    """Keys of the suppressions."""
    reason: str
    check_at: datetime | None = None
    """When the step is due again if no event has released it."""


@dataclass(frozen=True)
class Rested:
    """A notification queue sent what there was to send, and waits for the next event or instant."""

    entry: Mapping[str, Any]
    """The queue as JSON."""
    seq: int
    """The newest event that the queue knew. If another came meanwhile, the step is due again."""
    until: datetime | None = None
    rest: str = "idle"
    held_by: tuple[str, ...] = ()
    answer: Mapping[str, Any] = field(default_factory=dict)
    end: str | None = None
    """The state of the run if it ends: `completed` or `failed`."""
    error: str | None = None
    event: NewEvent | None = None
    """The event `notification-failed`, if the channel is given up."""


Outcome = Completed | Failed | TimedOut | Paused | Held | Rested
