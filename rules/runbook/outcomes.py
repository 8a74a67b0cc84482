"""What can come of performing a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tocsin.core.records import NewEvent


@dataclass(frozen=True)
class Completed:
    """Done. `way` is set by a `branch`: 0 for `then`, 1 for `else`; `event` by what appends one."""

    answer: Mapping[str, Any] = field(default_factory=dict)
    way: int | None = None
    event: NewEvent | None = None


@dataclass(frozen=True)
class Failed:
    """`permanent`: another attempt would fail in the same way. `retry_after`: the other side asks for so much time."""

    error: str
    permanent: bool = False
    answer: Mapping[str, Any] = field(default_factory=dict)
    retry_after: timedelta | None = None


@dataclass(frozen=True)
class TimedOut:
    """Nobody knows what came of it: another attempt follows if one is left."""

    error: str


@dataclass(frozen=True)
class Paused:
    """It goes on later: at an instant, or when an event meets `condition`, or when somebody reports."""

    until: datetime | None
    condition: str | None = None
    answer: Mapping[str, Any] = field(default_factory=dict)


Outcome = Completed | Failed | TimedOut | Paused
