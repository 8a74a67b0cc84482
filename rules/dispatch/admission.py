"""Admission: what becomes of an event that matches an action_rule. It begins a run, joins one or is
skipped.

A run gathers events during `group_wait`, until the rate limit allows it to begin, and, with
`overlap: queue`, until the run before it has ended. So an event that exceeds a limit is delayed and
never lost. Only `overlap: skip` skips.

Guarantee: the same history gives the same answer. Only the instant at which the event was recorded
and the active runs of the rule count, never the time at which a worker looks. Events of one batch
are admitted one after the other; each sees what the one before it did.

The record lane has one reader, so no other worker admits at the same time. Changes that other
workers and the clock make meanwhile are found when the runs are locked, and the batch is planned
again.

Pure: no I/O.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from schemas.documents.action_rule import ActionRuleDocument, RateLimit

_MAX_KEY_LENGTH = 500

AdmittedState = Literal["running", "gathering", "queued", "skipped"]


@dataclass(frozen=True, slots=True)
class Admission:
    state: AdmittedState
    joins: UUID | None = None
    """The gathering run that takes the event; `state` is then the state of that run."""
    replaces: tuple[UUID, ...] = ()
    reason: str | None = None
    begins_at: datetime | None = None
    """When a gathering run begins."""


@dataclass(slots=True)
class ActiveRuns:
    """The active runs of one rule and group."""

    gathering: UUID | None = None
    begun: list[UUID] = field(default_factory=list)
    """Running or queued, oldest first."""
    queued: UUID | None = None
    """The newest of those that are queued."""

    def add(self, id: UUID, state: str) -> None:
        if state == "gathering":
            self.gathering = id
            return
        self.begun.append(id)
        if state == "queued":
            self.queued = id


def group_key(rule: ActionRuleDocument, facts: Mapping[str, Any]) -> str:
    """A text that is the same for equal values; empty without `group_by`."""
    if not rule.group_by:
        return ""
    return group_text(rule.group_by, facts)


def group_text(paths: Sequence[str], facts: Mapping[str, Any]) -> str:
    """The values as JSON. A long text is replaced by its hash: it is part of an index."""
    text = json.dumps(list(group_values(paths, facts).values()), ensure_ascii=False, sort_keys=True)
    return text if len(text) <= _MAX_KEY_LENGTH else hashlib.sha256(text.encode()).hexdigest()


def group_values(paths: Sequence[str], facts: Mapping[str, Any]) -> dict[str, Any]:
    """The value of each path. `labels.site` is short for `payload.labels.site`."""
    return {path: _value(f"payload.{path}" if path.startswith("labels.") else path, facts) for path in paths}


def admit_notification(id: UUID, active: ActiveRuns) -> Admission:
    """An alarm joins the notification run of its group, or begins one with `id`."""
    if active.begun:
        return Admission("running", joins=active.begun[0])
    active.begun.append(id)
    return Admission("running")


def admit(
    rule: ActionRuleDocument, id: UUID, at: datetime, active: ActiveRuns, starts: list[datetime]
) -> Admission:
    """Decide about one event, whose run would have `id`, and update `active` and `starts`."""
    if active.gathering is not None:
        return Admission("gathering", joins=active.gathering)
    if rule.group_wait is not None and active.queued is not None:
        return Admission("queued", joins=active.queued)
    admission = _resolve_overlap(rule, active)
    if admission.state == "skipped":
        return admission
    if rule.group_wait is not None:
        admission = replace(admission, begins_at=at + rule.group_wait)
    if rule.rate_limit is not None:
        free_at = _reserve_start(rule.rate_limit, at, starts)
        if free_at > at:
            begins_at = max(free_at, admission.begins_at or free_at)
            admission = replace(admission, state="gathering", begins_at=begins_at)
    if admission.replaces:
        active.begun.clear()
        active.queued = None
    active.add(id, admission.state)
    return admission


def _reserve_start(limit: RateLimit, at: datetime, starts: list[datetime]) -> datetime:
    """The first instant from `at` on at which the limit allows a start. Starts that are reserved for
    later count as well."""
    starts[:] = sorted(start for start in starts if start > at - limit.per)
    free_at = at if len(starts) < limit.count else max(at, starts[-limit.count] + limit.per)
    starts.append(free_at)
    return free_at


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
