"""The roll-up: conditions of members, and the health of a system from them.

The condition of a member, the worst first:

- `outage` or `degraded`: its series keeps an alarm of such a severity open. An alarm that began
  when the series was already stale does not count: `stale` covers it.
- `stale`: its series is stale, unless its type says that the last value stays valid.
- `no-data`: it has never sent a datapoint.
- `uncovered`: it sends datapoints, but nothing can detect a problem: no event_rule covers it, and
  its type is not watched or `on_stale: hold`.
- `ok` otherwise.

The health of a system, the first that applies:

- `outage`: a required member is in outage.
- `unknown`: a required member is stale.
- `degraded`: an optional member is in outage, degraded or stale, or a required one is degraded.
- `ok`: a required member is ok.
- `unknown` otherwise. Members without data are ignored; the system is `unknown` only if no other
  required member can decide.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal, NamedTuple

from rules.health.observations import MemberAlarm

MemberCondition = Literal["ok", "degraded", "outage", "stale", "no-data", "uncovered"]
Health = Literal["ok", "degraded", "outage", "unknown"]
Reason = Literal["stale", "no-data", "uncovered"]


class SeverityThresholds(NamedTuple):
    """The severities from which an open alarm of a member counts."""

    degraded_at: int
    outage_at: int

    @classmethod
    def for_levels(cls, levels: int) -> SeverityThresholds:
        """The lowest level never counts, and the upper half is an outage.

        Of the usual six levels, these are `warning` and `high`.
        """
        return cls(min(2, levels), levels // 2 + 1)


class SeenSeries(NamedTuple):
    """The series of a member that has sent a datapoint."""

    stale_since: datetime | None = None


def member_condition(
    series: SeenSeries | None,
    alarms: Iterable[MemberAlarm],
    is_covered: bool,
    thresholds: SeverityThresholds,
) -> MemberCondition:
    """The condition of a member. `alarms` are those that its series keeps open."""
    stale_since = None if series is None else series.stale_since
    counted = (alarm.severity for alarm in alarms if stale_since is None or alarm.since < stale_since)
    highest = max(counted, default=0)
    if highest >= thresholds.outage_at:
        return "outage"
    if highest >= thresholds.degraded_at:
        return "degraded"
    if series is None:
        return "no-data"
    if stale_since is not None:
        return "stale"
    return "ok" if is_covered else "uncovered"


def roll_up(members: Iterable[tuple[MemberCondition, bool]]) -> tuple[Health, Reason | None]:
    """The health of a system whose members have these conditions; true: the member is required."""
    members = list(members)
    required = {condition for condition, is_required in members if is_required}
    optional = {condition for condition, is_required in members if not is_required}
    if "outage" in required:
        return "outage", None
    if "stale" in required:
        return "unknown", "stale"
    if "degraded" in required or optional & {"outage", "degraded", "stale"}:
        return "degraded", None
    if "ok" in required:
        return "ok", None
    return "unknown", "no-data" if "no-data" in required else "uncovered"
