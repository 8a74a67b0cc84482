"""A run as its steps see it. Pure: no I/O.

A run is one execution of an action for one event, a row of the table `action`. `RunFacts` has the
names that conditions and templates use.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any
from uuid import UUID, uuid5

from rules.runbook import Node, Program, compile_runbook
from rules.runbook.program import read_document
from tocsin.core.errors import InvalidInput

_RUN_IDS = UUID("0b7c6ce5-0f0b-5d0e-8b0a-6f2d4f5f9a21")


def run_id(rule: str, event_id: UUID) -> UUID:
    """Id of the run that a rule starts for an event: the same wherever it is computed."""
    return uuid5(_RUN_IDS, f"{rule}/{event_id}")


@dataclass(frozen=True)
class ActionRun:
    """A run as it was read: `version` proves that it has not changed since."""

    id: UUID
    name: str
    """Name of the action."""
    rule: str
    group_key: str
    document: Mapping[str, Any]
    """The action as it was applied when the run started."""
    state: str
    active: Mapping[str, Mapping[str, Any]]
    """Entries of the active steps by number; see `rules.runbook.advance`."""
    answers: Mapping[str, Any]
    owner: str
    alarm_id: UUID | None
    event_id: UUID
    event_seq: int
    correlation_id: UUID
    lineage: tuple[str, ...]
    ending: str | None
    """Why the run ends, once its `finally` has begun: `ended` or `cancelled`."""
    version: int
    started_at: datetime
    read_at: datetime
    """Instant of the read, by the database's clock."""

    @cached_property
    def program(self) -> Program:
        """The compiled runbook. Raises `ValidationError` or `InvalidInput` for a document that this
        version of Tocsin cannot read."""
        return compile_document(self.document)

    @property
    def next_lineage(self) -> tuple[str, ...]:
        """The lineage of the events and messages that this run causes."""
        return (*self.lineage, self.rule)

    def node(self, step: int) -> Node:
        if step >= len(self.program.nodes):
            raise InvalidInput(f"action {self.name!r} has no step {step}")
        return self.program.nodes[step]

    def entry(self, step: int) -> Mapping[str, Any]:
        return self.active.get(str(step), {})

    def was_woken_early(self, step: int) -> bool:
        """Whether an event or a report made the step due before its timer fired."""
        entry = self.entry(step)
        return "met" in entry or "report" in entry or "rest" in entry

    def event_wait_has_ended(self, step: int) -> bool:
        """Whether the event of the step came, or its timer fired first."""
        entry = self.entry(step)
        return "met" in entry or "lapsed" in entry

    def is_due(self, step: int, attempt: int) -> bool:
        """Whether this attempt of the step has not been performed yet."""
        entry = self.entry(step)
        return self.state == "running" and entry.get("state") == "due" and entry.get("attempt") == attempt


@dataclass(frozen=True)
class RunFacts:
    """The events and the alarm of a run."""

    event: Mapping[str, Any]
    """The first of `events`: the one that started the run."""
    events: tuple[Mapping[str, Any], ...]
    alarm: Mapping[str, Any]
    """The alarm of that event."""
    alarms: tuple[Mapping[str, Any], ...] = ()
    """The alarms of all events, each as it is now."""


def compile_document(document: Mapping[str, Any]) -> Program:
    return _compile(json.dumps(document, sort_keys=True))


@lru_cache(maxsize=1_024)
def _compile(text: str) -> Program:
    return compile_runbook(read_document(json.loads(text)))
