"""What a simulation has seen happen, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Kind = Literal["event", "alarm", "stale", "fresh", "step", "run", "health"]


@dataclass(frozen=True)
class Happening:
    """`name` is the event's type, the alarm's rule, the key of a series, the action, or the system; `state` its edge,
    outcome or health."""

    at: datetime
    kind: Kind
    name: str
    owner: str
    state: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    rule: str = ""
    """Of a step: the action_rule whose run it is of."""
    event: Mapping[str, Any] = field(default_factory=dict)
    """Of a step: the first event of its run."""
