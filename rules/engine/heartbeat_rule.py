"""A compiled heartbeat: the rule `heartbeat:<name>` over the check-ins of a job.

Guarantee: the expected times are a pure function of the document and the tz data. Two rules with the
same `fingerprint` expect the same. The document has the content of its calendars, so the version of a
calendar is part of the version of the rule.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Any

from rules.engine.rule import Rule
from schemas.documents.event_rule import EventRuleDocument
from schemas.documents.heartbeat import HeartbeatDocument
from schemas.values.rule_ref import RuleRef
from schemas.wire.check_in import check_in_key
from timers.recurrence import Recurrence

_TEXT_KEYS = {"name", "severity", "notify", "repeat", "title", "description", "runbook_url", "enabled"}
"""Keys on which no decision depends."""


class HeartbeatRule(Rule):
    """The owners are `owners`; a check-in of another owner has no effect."""

    is_heartbeat = True

    def __init__(self, heartbeat: HeartbeatDocument, recurrence: Recurrence | None) -> None:
        """`recurrence` has the expected times; None for an interval (`every`)."""
        self.heartbeat = heartbeat
        self.recurrence = recurrence
        self.interval = heartbeat.interval
        self.grace = heartbeat.grace
        self.early = heartbeat.grace if heartbeat.early is None else heartbeat.early
        self.max_duration = heartbeat.max_duration
        self.owners = frozenset(heartbeat.expected_owners)
        self.key = check_in_key(heartbeat.name)
        super().__init__(_event_rule(heartbeat))

    def _fingerprint(self) -> str:
        deciding = self.heartbeat.model_dump(mode="json", exclude=_TEXT_KEYS)
        return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()[:16]

    def expected_after(self, instant: datetime) -> datetime | None:
        """The first expected time after an instant; with `every`: the interval after it."""
        if self.recurrence is None:
            assert self.interval is not None
            return instant + self.interval
        return self.recurrence.next_after(instant)

    def opens_at(self, before: datetime | None, expected_at: datetime) -> datetime:
        """From when on a check-in counts for an expected time; `before` is the one before it.

        At most half of the period: a second check-in after the first one must not count for the next day.
        """
        opens_at = expected_at - self.early
        if before is None:
            return opens_at
        return max(opens_at, before + (expected_at - before) / 2)


def _event_rule(heartbeat: HeartbeatDocument) -> EventRuleDocument:
    """The document of an alarm like every other: its severity, texts and channels."""
    facts: dict[str, Any] = {
        "name": "heartbeat",
        "datapoint": check_in_key(heartbeat.name),
        "per": "owner",
        "fire": 'value == "fail"',
        "severity": heartbeat.severity,
        "title": heartbeat.title,
        "description": heartbeat.description,
        "runbook_url": heartbeat.runbook_url,
    }
    document = EventRuleDocument.model_validate(facts)
    name = str(RuleRef("heartbeat", heartbeat.name))
    return document.model_copy(
        update={"name": name, "notify": heartbeat.notify, "enabled": heartbeat.enabled}
    )
