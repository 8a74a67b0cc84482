"""What the engine judges: datapoints that arrived, series that went stale, events.

`at` is the instant that decides: when the datapoint arrived, when the deadline of the watchdog passed, when the
event was recorded. Inputs of one owner come in this order, and at one instant in stream order. `ts` is the
producer's word: data.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from cel_expr_python import cel

Value = float | int | str | bool


class Arrival(NamedTuple):
    """A datapoint of a producer: finite, without NUL (`schemas.values.json_shape`), with its own labels."""

    at: datetime
    seq: int
    owner: str
    key: str
    value: Value
    ts: datetime
    labels: dict[str, str]


class WentStale(NamedTuple):
    """The deadline `at` passed without a datapoint after `last_arrival`; the rest is the last datapoint."""

    at: datetime
    owner: str
    key: str
    last_arrival: datetime
    value: Value
    ts: datetime
    labels: dict[str, str]
    told_at: datetime | None = None
    """For a rule that found the series stale when it began to judge it: when that was applied."""


class EventSeen(NamedTuple):
    """An event, as `Event.facts()` gives it. `activation` may be shared by all rules that see the event."""

    at: datetime
    facts: Mapping[str, Any]
    activation: cel.Activation | None = None

    @property
    def owner(self) -> str:
        return str(self.facts.get("owner") or "")


Input = Arrival | WentStale | EventSeen
