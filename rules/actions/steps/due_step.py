"""An attempt of a step that is due: its run, its place in the runbook, and the data for its
templates. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rules.actions.run import ActionRun, RunFacts
from rules.lanes.lineage import LINEAGE_HEADER, lineage_text
from rules.runbook import Node
from schemas.documents.runbook import StepDocument
from schemas.values.severities import level_name


def named_severity(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts with the name of their severity; it is empty if they have none."""
    severity = facts["severity"]
    return {**facts, "severity": level_name(severity) if severity else ""}


MAX_TEXT_LENGTH = 4_000
"""Longest text that the record log keeps of a step's result. The sent text itself is not cut."""


@dataclass(frozen=True)
class DueStep:
    run: ActionRun
    node: Node
    facts: RunFacts

    @property
    def kind(self) -> str:
        return self.node.kind

    @property
    def document(self) -> StepDocument:
        return self.node.step

    @property
    def entry(self) -> Mapping[str, Any]:
        """The stored state of the step in its run.

        It has `attempt` and `state`, and what ended a wait: `met` (the seq of the awaited event),
        `report` (of the service) or `lapsed` (the time is over).
        """
        return self.run.entry(self.node.number)

    @property
    def attempt(self) -> int:
        return int(self.entry["attempt"])

    @property
    def is_last_attempt(self) -> bool:
        return self.attempt >= int(self.entry.get("last", self.node.attempts))

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt."""
        return f"{self.run.id}/{self.node.number}"

    @cached_property
    def data(self) -> dict[str, Any]:
        """The values that templates may use, by name. A severity is the name of its level: conditions
        compare numbers, people read names."""
        return {
            **named_severity(self.facts.event),
            "alarm": named_severity(self.facts.alarm),
            "alarms": [named_severity(alarm) for alarm in self.facts.alarms],
            "answers": self.run.answers,
            "events": [named_severity(event) for event in self.facts.events],
            "now": self.run.read_at,
        }

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every message that the step publishes. A service that answers with an event
        passes them on, so that Tocsin can tell the answer from an unrelated event."""
        return {
            "Tocsin-Idempotency-Key": self.idempotency_key,
            "Tocsin-Correlation-Id": str(self.run.correlation_id),
            LINEAGE_HEADER: lineage_text(self.run.next_lineage),
        }
