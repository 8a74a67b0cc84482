"""Whether and how an event that matches an action_rule becomes a run: begin, gather, join, queue, skip or replace.

Guarantee: pure, and the same answer for the same history: what counts is the instant at which the event was recorded
and the runs that the rule already has, never the time of day at which anybody looks. What is not started is recorded
with its reason. Events of one batch are admitted one after the other, each seeing what the one before it did.

The record lane has one reader, so nobody else admits at the same time; what workers and the clock change meanwhile is
found when the runs are locked, and the batch is judged again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from schemas.documents.action_rule import ActionRuleDocument

State = Literal["running", "gathering", "queued", "skipped"]


@dataclass(frozen=True, slots=True)
class Admission:
    state: State
    joins: UUID | None = None
    """The gathering run that takes the event; then `state` is that run's."""
    replaces: tuple[UUID, ...] = ()
    reason: str | None = None


@dataclass(slots=True)
class Standing:
    """The runs of one rule and group that are under way, oldest first, and how often the rule started of late."""

    gathering: UUID | None = None
    under_way: list[UUID] = field(default_factory=list)
    """Running or queued."""


def group_key(rule: ActionRuleDocument, facts: Mapping[str, Any]) -> str:
    """One text for equal values; empty without `group_by`."""
    if not rule.group_by:
        return ""
    return json.dumps([_value(path, facts) for path in rule.group_by], ensure_ascii=False, sort_keys=True)


def admit(
    rule: ActionRuleDocument, id: UUID, at: datetime, standing: Standing, starts: list[datetime]
) -> Admission:
    """Decide about one event, whose run would have `id`, and keep `standing` and `starts` up to date."""
    if standing.gathering is not None:
        return Admission("gathering", joins=standing.gathering)
    if rule.rate_limit is not None:
        starts[:] = [start for start in starts if start > at - rule.rate_limit.per]
        if len(starts) >= rule.rate_limit.count:
            return Admission("skipped", reason=f"rate limit: {rule.rate_limit.count} starts were reached")
    admission = _beside(rule, standing)
    if admission.state == "skipped":
        return admission
    if rule.rate_limit is not None:
        starts.append(at)
    if admission.replaces:
        standing.under_way.clear()
    if admission.state == "gathering":
        standing.gathering = id
    else:
        standing.under_way.append(id)
    return admission


def _beside(rule: ActionRuleDocument, standing: Standing) -> Admission:
    """What `overlap` says about the runs that are under way."""
    begins: State = "running" if rule.group_wait is None else "gathering"
    if not standing.under_way or rule.overlap == "allow":
        return Admission(begins)
    if rule.overlap == "skip":
        return Admission("skipped", reason=f"overlap: run {standing.under_way[0]} is under way")
    if rule.overlap == "replace":
        return Admission(begins, replaces=tuple(standing.under_way))
    return Admission("queued" if rule.group_wait is None else "gathering")


def _value(path: str, facts: Mapping[str, Any]) -> Any:
    value: Any = facts
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
