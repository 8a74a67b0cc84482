"""Inputs of the engine: datapoints that arrived, series that became stale, events, open alarms.

`at` is the instant that decides: the arrival of the datapoint, the deadline of the watchdog, the
commit of the event. The inputs of one owner come in this order, and at one instant in the order of
the stream. `ts` is the time that the producer gave: it orders the values of a series, and `rate`
is computed from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from rules.language.cel.bound_facts import BoundFacts

Value = float | int | str | bool


class Arrival(NamedTuple):
    """A datapoint of a producer, with its own labels.

    Its value is finite and without NUL (`schemas.values.json_shape`).
    """

    at: datetime
    seq: int
    owner: str
    key: str
    value: Value
    ts: datetime
    labels: dict[str, str]
    is_late: bool = False
    """Its `ts` is older than the newest of the series: it is stored, and not evaluated."""


class WentStale(NamedTuple):
    """The deadline `at` passed without a datapoint after `last_arrival`.

    The rest is the last datapoint.
    """

    at: datetime
    owner: str
    key: str
    last_arrival: datetime
    value: Value
    ts: datetime
    labels: dict[str, str]
    reevaluated_at: datetime | None = None
    """For a rule that was applied while the series was stale: the instant of the apply."""


class EventSeen(NamedTuple):
    """An event, with its facts (`schemas.wire.event_facts`).

    All rules may share one `activation`.
    """

    at: datetime
    facts: Mapping[str, Any]
    activation: BoundFacts | None = None

    @property
    def owner(self) -> str:
        return str(self.facts.get("owner") or "")


class OpenAlarm(NamedTuple):
    """An open alarm of an owner, as a rule over alarms sees it."""

    rule: str
    instance: str
    since: datetime
    """When it opened."""


class OpenAlarms(NamedTuple):
    """All alarms of an owner that are open when a rule over alarms comes into force.

    From then on their transitions reach the rule as events.
    """

    at: datetime
    owner: str
    alarms: Sequence[OpenAlarm]


Input = Arrival | WentStale | EventSeen | OpenAlarms
