"""What a simulation has seen happen, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Kind = Literal["event", "alarm", "stale", "fresh", "step", "run"]


@dataclass(frozen=True)
class Happening:
    """`name` is the event's type, the alarm's rule, the key of a series, or the action; `state` its edge or outcome."""

    at: datetime
    kind: Kind
    name: str
    owner: str
    state: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
