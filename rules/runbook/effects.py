"""Effects that `advance` returns: what has to be written after the outcome of a step.

`rules.actions.commit` writes them to Postgres; `rules.replay.runs` applies them to simulated runs.
Their order is the order in the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tocsin.core.records import NewEvent


@dataclass(frozen=True)
class StepRecord:
    """Append a record of the step. One with the state `due` makes a worker perform the step."""

    step: int
    attempt: int
    state: str
    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class WaitTimer:
    """Arm a `runbook-wait` timer. When it fires, the clock merges `entry` into the entry of the
    step."""

    step: int
    at: datetime
    entry: Mapping[str, Any]


@dataclass(frozen=True)
class AwaitedEvent:
    """Let the step wait for an event that meets `condition`."""

    step: int
    attempt: int
    condition: str


@dataclass(frozen=True)
class StepAnswer:
    """Store the answer of the step, for the steps after it."""

    name: str
    answer: Mapping[str, Any]


@dataclass(frozen=True)
class EmittedEvent:
    """Append the event of an `emit` step, together with its outcome."""

    event: NewEvent


@dataclass(frozen=True)
class FinallyBegin:
    """Store that `finally` has begun, and why the run ends: `ended` or `cancelled`."""

    ending: str
    error: str | None = None


@dataclass(frozen=True)
class RunEnd:
    """End the run: completed, failed, timed_out, or cancelled after its `finally`."""

    state: str
    error: str | None = None


Effect = StepRecord | WaitTimer | AwaitedEvent | StepAnswer | EmittedEvent | FinallyBegin | RunEnd
