"""The roll-up, as pure functions: what a member is in, and what that makes of its system.

A member is, the worst first:

- `outage` or `degraded`: its series holds an open alarm of that weight. An alarm that began with the silence of
  the series says no more than the silence.
- `stale`: it spoke and stopped, unless its type says that the last value holds. `no-data`: it has never spoken.
  `uncovered`: it speaks, and nothing could ever say that it is ill, neither an event_rule nor a watched type whose
  silence counts. Otherwise `ok`.

A system is in `outage` if a required member is; `unknown` if a required member is stale, because we have lost sight
of it; `degraded` if an optional member is ill or stale, or a required one is degraded; `ok` if a required member is.
What has never spoken is gray and takes nothing down: only if nothing is left to judge by is the system `unknown`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal, NamedTuple

Condition = Literal["ok", "degraded", "outage", "stale", "no-data", "uncovered"]
Health = Literal["ok", "degraded", "outage", "unknown"]
Reason = Literal["stale", "no-data", "uncovered"]


class Weights(NamedTuple):
    """Severities from which on an open alarm of a member counts."""

    degraded_at: int
    outage_at: int

    @classmethod
    def among(cls, levels: int) -> Weights:
        """The lowest level never counts, the upper half is an outage: of the usual six, warning and high."""
        return cls(min(2, levels), levels // 2 + 1)


class Seen(NamedTuple):
    """The series of a member."""

    stale_since: datetime | None = None


class Open(NamedTuple):
    """An open alarm that the series holds."""

    severity: int
    since: datetime


def condition(seen: Seen | None, alarms: Iterable[Open], covered: bool, weights: Weights) -> Condition:
    stale_since = None if seen is None else seen.stale_since
    worst = max((one.severity for one in alarms if stale_since is None or one.since < stale_since), default=0)
    if worst >= weights.outage_at:
        return "outage"
    if worst >= weights.degraded_at:
        return "degraded"
    if seen is None:
        return "no-data"
    if stale_since is not None:
        return "stale"
    return "ok" if covered else "uncovered"


def roll_up(members: Iterable[tuple[Condition, bool]]) -> tuple[Health, Reason | None]:
    """Of (condition, required)."""
    members = list(members)
    required = {one for one, is_required in members if is_required}
    optional = {one for one, is_required in members if not is_required}
    if "outage" in required:
        return "outage", None
    if "stale" in required:
        return "unknown", "stale"
    if "degraded" in required or optional & {"outage", "degraded", "stale"}:
        return "degraded", None
    if "ok" in required:
        return "ok", None
    return "unknown", "no-data" if "no-data" in required else "uncovered"
