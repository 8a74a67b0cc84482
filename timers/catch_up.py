"""Decides which occurrences a due tick fires and which it misses. Pure; called by the clock.

Guarantee I1 (docs/guarantees.md): every occurrence from the tick's own up to `now` is in exactly
one of `fires` and `missed`, and `following` is the first one after them. A tick that is late by at
most its grace fires its own occurrence, even if the next one is due as well: that one becomes the
next tick.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from timers.recurrence import Occurrence, Recurrence
from tocsin.core.instant import MICROSECOND

LONGEST_DEFAULT_GRACE = timedelta(minutes=1)
COUNT_LIMIT = 10_000


@dataclass(frozen=True)
class Policy:
    catch_up: str = "latest"
    window: timedelta | None = None
    grace: timedelta | None = None
    max_catch_up: int = 100
    spread: timedelta = timedelta(0)


@dataclass(frozen=True)
class Missed:
    count: int
    at_least: bool
    first: Occurrence
    last: Occurrence
    reason: str


class Decision(NamedTuple):
    fires: tuple[Occurrence, ...]
    missed: Missed | None
    following: Occurrence | None
    done: Occurrence
    """The newest occurrence that is done with this decision."""


def decide(
    recurrence: Recurrence, policy: Policy, nominal_at: datetime, now: datetime, own: Occurrence | None = None
) -> Decision:
    """Decide about the tick of `nominal_at`, which is due at `now`.

    `own` is its occurrence, if known.
    """
    if own is None:
        own = occurrence_at(recurrence, nominal_at)
    following = recurrence.occurrence_after(nominal_at)
    if now - policy.spread - nominal_at <= grace_of(policy, own, following):
        return Decision((own,), None, following, own)
    return _catch_up(recurrence, policy, own, now)


def occurrence_at(recurrence: Recurrence, nominal_at: datetime) -> Occurrence:
    """The occurrence at this instant.

    A tick that the recurrence no longer names is identified by its instant.
    """
    occurrence = recurrence.occurrence_after(nominal_at - MICROSECOND)
    return (
        occurrence
        if occurrence is not None and occurrence.at == nominal_at
        else Occurrence(nominal_at, None, 0, None)
    )


def grace_of(policy: Policy, own: Occurrence, following: Occurrence | None) -> timedelta:
    if policy.grace is not None:
        return policy.grace
    if following is None:
        return LONGEST_DEFAULT_GRACE
    return min(LONGEST_DEFAULT_GRACE, (following.at - own.at) / 2)


def _catch_up(recurrence: Recurrence, policy: Policy, own: Occurrence, now: datetime) -> Decision:
    due_until = now - policy.spread
    before_own = own.at - MICROSECOND
    latest = recurrence.latest_between(own.at, due_until) or own
    following = recurrence.occurrence_after(latest.at)
    fires = _fires(recurrence, policy, own, latest, due_until)
    last_missed_at = fires[0].at - MICROSECOND if fires else latest.at
    missed = None
    if last_missed_at >= own.at:
        later, at_least = recurrence.count_between(own.at, last_missed_at, limit=COUNT_LIMIT - 1)
        last_missed = recurrence.latest_between(before_own, last_missed_at) or own
        missed = Missed(later + 1, at_least, own, last_missed, _reason(policy, fires))
    return Decision(fires, missed, following, latest)


def _fires(
    recurrence: Recurrence, policy: Policy, own: Occurrence, latest: Occurrence, due_until: datetime
) -> tuple[Occurrence, ...]:
    oldest = own.at if policy.window is None else max(own.at, due_until - policy.window)
    if policy.catch_up == "none" or latest.at < oldest:
        return ()
    if policy.catch_up == "latest":
        return (latest,)
    return _newest(recurrence, own, oldest, latest.at, policy.max_catch_up)


def _newest(
    recurrence: Recurrence, own: Occurrence, oldest: datetime, newest: datetime, limit: int
) -> tuple[Occurrence, ...]:
    """The last `limit` occurrences in [oldest, newest], in order, searched from the end."""
    occurrences: list[Occurrence] = []
    until = newest
    while len(occurrences) < limit:
        occurrence = recurrence.latest_between(oldest - MICROSECOND, until)
        if occurrence is None:
            break
        occurrences.append(occurrence)
        until = occurrence.at - MICROSECOND
        if until < oldest:
            break
    if not occurrences and own.at >= oldest:
        occurrences.append(own)
    return tuple(reversed(occurrences))


def _reason(policy: Policy, fires: tuple[Occurrence, ...]) -> str:
    if policy.catch_up == "none":
        return "late, and catch_up is none"
    if not fires:
        return "older than the window"
    if policy.catch_up == "latest":
        return "a later one fired in their place"
    return "more than max_catch_up, or older than the window"
