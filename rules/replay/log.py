"""Entries of the log of a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

LogKind = Literal["event", "alarm", "stale", "fresh", "rejected", "step", "run", "health", "calculated"]


@dataclass(frozen=True)
class LogEntry:
    """Something that happened at an instant.

    `name` is the type of an event, the rule of an alarm, the key of a series, an action, a system or
    a calc_rule. `state` is the origin of an event, the transition of an alarm, the outcome of a step,
    the state of a run or the health of a system.
    """

    at: datetime
    kind: LogKind
    name: str
    owner: str
    state: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    rule: str = ""
    """The action_rule that started the run of a step."""
    event: Mapping[str, Any] = field(default_factory=dict)
    """The first event of the run of a step."""
