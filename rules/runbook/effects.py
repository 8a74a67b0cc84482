"""Effects of an outcome, as data. Their order is the order in the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tocsin.core.records import NewEvent


@dataclass(frozen=True)
class Recorded:
    """A record of the step. One with the state `due` makes a worker perform the step."""

    step: int
    attempt: int
    state: str
    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Armed:
    """A `runbook-wait` timer. When it fires, the clock merges `entry` into the entry of the
    step."""

    step: int
    at: datetime
    entry: Mapping[str, Any]


@dataclass(frozen=True)
class Awaited:
    """The step waits for an event."""

    step: int
    attempt: int
    condition: str


@dataclass(frozen=True)
class Answered:
    """The answer of the step, for the steps after it."""

    name: str
    answer: Mapping[str, Any]


@dataclass(frozen=True)
class Emitted:
    """An event that the step appends to the log, with its outcome."""

    event: NewEvent


@dataclass(frozen=True)
class Finished:
    """The run has ended: completed, failed or timed_out."""

    state: str
    error: str | None = None


Effect = Recorded | Armed | Awaited | Answered | Emitted | Finished
