"""What must be written after a step, as data. The order of the list is the order in the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tocsin.core.records import NewEvent


@dataclass(frozen=True)
class Recorded:
    """A row of the step's history. A step that is `due` is thereby given to the workers."""

    step: int
    attempt: int
    state: str
    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Armed:
    """A `runbook-wait` timer; when it fires, `entry` is merged into what the step's state is."""

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
    """What the step leaves for those after it."""

    name: str
    answer: Mapping[str, Any]


@dataclass(frozen=True)
class Emitted:
    """An event that the step appends to the log, with its outcome."""

    event: NewEvent


@dataclass(frozen=True)
class Finished:
    """The action has ended: completed, failed or timed_out."""

    state: str
    error: str | None = None


Effect = Recorded | Armed | Awaited | Answered | Emitted | Finished
