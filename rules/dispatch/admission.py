"""Admission: what becomes of an event that matches an action_rule. It begins a run, joins one or is
skipped.

Guarantee: the same history gives the same answer. Only the instant at which the event was recorded
and the active runs of the rule count, never the time at which a worker looks. Events of one batch
are admitted one after the other; each sees what the one before it did.

The record lane has one reader, so no other worker admits at the same time. Changes that other
workers and the clock make meanwhile are found when the runs are locked, and the batch is planned
again.

Pure: no I/O.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from schemas.documents.action_rule import ActionRuleDocument

AdmittedState = Literal["running", "gathering", "queued", "skipped"]


@dataclass(frozen=True, slots=True)
class Admission:
    state: AdmittedState
    joins: UUID | None = None
    """The gathering run that takes the event; `state` is then the state of that run."""
    replaces: tuple[UUID, ...] = ()
    reason: str | None = None


@dataclass(slots=True)
class ActiveRuns:
    """The active runs of one rule and group."""

    gathering: UUID | None = None
    begun: list[UUID] = field(default_factory=list)
    """Running or queued, oldest first."""


def group_key(rule: ActionRuleDocument, facts: Mapping[str, Any]) -> str:
    """A text that is the same for equal values; empty without `group_by`."""
    if not rule.group_by:
        return ""
    return json.dumps([_value(path, facts) for path in rule.group_by], ensure_ascii=False, sort_keys=True)


def admit(
    rule: ActionRuleDocument, id: UUID, at: datetime, active: ActiveRuns, starts: list[datetime]
) -> Admission:
    """Decide about one event, whose run would have `id`, and update `active` and `starts`."""
    if active.gathering is not None:
        return Admission("gathering", joins=active.gathering)
    if rule.rate_limit is not None:
        starts[:] = [start for start in starts if start > at - rule.rate_limit.per]
        if len(starts) >= rule.rate_limit.count:
            return Admission("skipped", reason=f"rate limit: {rule.rate_limit.count} starts were reached")
    admission = _resolve_overlap(rule, active)
    if admission.state == "skipped":
        return admission
    if rule.rate_limit is not None:
        starts.append(at)
    if admission.replaces:
        active.begun.clear()
    if admission.state == "gathering":
        active.gathering = id
    else:
        active.begun.append(id)
    return admission


def _resolve_overlap(rule: ActionRuleDocument, active: ActiveRuns) -> Admission:
    begins: AdmittedState = "running" if rule.group_wait is None else "gathering"
    if not active.begun or rule.overlap == "allow":
        return Admission(begins)
    if rule.overlap == "skip":
        return Admission("skipped", reason=f"overlap: run {active.begun[0]} is active")
    if rule.overlap == "replace":
        return Admission(begins, replaces=tuple(active.begun))
    return Admission("queued" if rule.group_wait is None else "gathering")


def _value(path: str, facts: Mapping[str, Any]) -> Any:
    value: Any = facts
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
