"""Applies the policies of action_rules (groups, overlaps, rate limits) to the matches of a batch.

Guarantee: the active runs are read without a lock, and locked and compared before anything is
written. If a run began or ended since they were read, the batch is a `Conflict` and planned again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from psycopg.types.json import Jsonb

from rules.actions.run import run_id
from rules.dispatch.admission import (
    ActiveRuns,
    Admission,
    admit,
    admit_notification,
)
from rules.dispatch.matcher import Match
from rules.dispatch.notifications import OPENED
from rules.lanes.lineage import suppression
from schemas.wire.event import Event
from tocsin.core.db import Connection, fetch_all, statement
from tocsin.core.errors import Conflict


@dataclass(frozen=True)
class Start:
    event: Event
    match: Match
    admission: Admission
    group: str = ""
    lineage: tuple[str, ...] = ()
    """The rules that led to the event."""

    @property
    def id(self) -> UUID:
        return self.admission.joins or run_id(self.match.rule, self.event.id)


class ActiveRun(NamedTuple):
    rule: str
    group: str
    id: UUID
    state: str


class Policies:
    """The active runs and recent starts of rules with a policy, updated with each start of the
    batch."""

    def __init__(
        self,
        runs: Sequence[ActiveRun] = (),
        starts: Mapping[str, list[datetime]] | None = None,
        linked: frozenset[tuple[str, UUID]] = frozenset(),
    ) -> None:
        self.runs = runs
        self.starts = dict(starts or {})
        self._pairs: dict[tuple[str, str], bool] = {}
        """The rules and groups that were read, and whether begun runs count."""
        self._linked = linked
        """Pairs of a rule and an event that have a run already."""
        self._active: dict[tuple[str, str], ActiveRuns] = {}
        for run in runs:
            self._active.setdefault((run.rule, run.group), ActiveRuns()).add(run.id, run.state)

    @classmethod
    async def read(cls, connection: Connection, matches: Sequence[tuple[Event, Match]]) -> Policies:
        """Reads nothing for rules without a policy, which most are."""
        bound = [(event, match) for event, match in matches if _has_policy(event, match)]
        if not bound:
            return cls()
        counted = {(match.rule, _group(event, match)): _counts_begun_runs(match) for event, match in bound}
        runs = await fetch_all(connection, "rules.dispatch/read_active_runs", _columns(counted))
        limited = sorted({match.rule for _, match in bound if match.policy and match.policy.rate_limit})
        starts = (
            await fetch_all(connection, "rules.dispatch/read_starts", {"rules": limited}) if limited else []
        )
        pairs = {
            "rules": [match.rule for _, match in bound],
            "event_ids": [event.id for event, _ in bound],
        }
        linked = await fetch_all(connection, "rules.dispatch/find_linked", pairs)
        policies = cls([ActiveRun(*run) for run in runs], dict(starts), frozenset(linked))
        policies._pairs = counted
        return policies

    def start(self, event: Event, match: Match, lineage: tuple[str, ...]) -> Start | None:
        """None if the event has a run of this rule already."""
        suppressed = match.inactive or suppression(match.rule, lineage)
        if suppressed is not None:
            return Start(event, match, Admission("skipped", reason=suppressed), lineage=lineage)
        group = _group(event, match)
        if not _has_policy(event, match):
            return Start(event, match, Admission("running"), group, lineage)
        if (match.rule, event.id) in self._linked:
            return None
        active = self._active.setdefault((match.rule, group), ActiveRuns())
        id = run_id(match.rule, event.id)
        if match.policy is None:
            return Start(event, match, admit_notification(id, active), group, lineage)
        starts = self.starts.setdefault(match.rule, [])
        admission = admit(match.policy, id, event.recordedat, active, starts)
        return Start(event, match, admission, group, lineage)

    async def verify(self, connection: Connection) -> None:
        """Lock the active runs. `Conflict` if they are not those that were read."""
        if not self._pairs:
            return
        rows = await fetch_all(connection, "rules.dispatch/lock_active_runs", _columns(self._pairs))
        if {ActiveRun(*row) for row in rows} != set(self.runs):
            raise Conflict("a run began or ended while the next was being admitted")

    async def put_starts(self, connection: Connection) -> None:
        limited = sorted(rule for rule, starts in self.starts.items() if starts)
        if limited:
            texts = [Jsonb([start.isoformat() for start in self.starts[rule]]) for rule in limited]
            await connection.execute(
                statement("rules.dispatch/put_starts"), {"rules": limited, "starts": texts}
            )


def _group(event: Event, match: Match) -> str:
    return match.group_of(event.facts(), event.alarmid)


def _has_policy(event: Event, match: Match) -> bool:
    """Whether the admission depends on other runs."""
    if match.notify is not None:
        # An alarm opens once, so nothing can be active for it yet.
        return match.notify.group_wait is not None or event.type != OPENED
    policy = match.policy
    return policy is not None and (
        policy.rate_limit is not None or policy.group_wait is not None or policy.overlap != "allow"
    )


def _counts_begun_runs(match: Match) -> bool:
    """Whether runs that do not gather any more count as well."""
    return match.policy is None or match.policy.overlap != "allow"


def _columns(pairs: Mapping[tuple[str, str], bool]) -> dict[str, list[str] | list[bool]]:
    return {
        "rules": [rule for rule, _ in pairs],
        "groups": [group for _, group in pairs],
        "begun": list(pairs.values()),
    }
