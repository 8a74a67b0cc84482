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
from rules.dispatch.admission import ActiveRuns, Admission, admit, group_key
from rules.dispatch.matcher import Match
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
        self._linked = linked
        """Pairs of a rule and an event that have a run already."""
        self._active: dict[tuple[str, str], ActiveRuns] = {}
        for run in runs:
            active = self._active.setdefault((run.rule, run.group), ActiveRuns())
            if run.state == "gathering":
                active.gathering = run.id
            else:
                active.begun.append(run.id)

    @classmethod
    async def read(cls, connection: Connection, matches: Sequence[tuple[Event, Match]]) -> Policies:
        """Reads nothing for rules without a policy, which most are."""
        bound = [(event, match) for event, match in matches if _has_policy(match)]
        if not bound:
            return cls()
        rules = {"rules": sorted({match.rule for _, match in bound})}
        overlapping = {"rules": sorted({match.rule for _, match in bound if _counts_active_runs(match)})}
        runs = await fetch_all(connection, "rules.dispatch/read_active_runs", overlapping)
        starts = await fetch_all(connection, "rules.dispatch/read_starts", rules)
        pairs = {
            "rules": [match.rule for _, match in bound],
            "event_ids": [event.id for event, _ in bound],
        }
        linked = await fetch_all(connection, "rules.dispatch/find_linked", pairs)
        return cls([ActiveRun(*run) for run in runs], dict(starts), frozenset(linked))

    def start(self, event: Event, match: Match, lineage: tuple[str, ...]) -> Start | None:
        """None if the event has a run of this rule already."""
        suppressed = suppression(match.rule, lineage)
        if suppressed is not None:
            return Start(event, match, Admission("skipped", reason=suppressed), lineage=lineage)
        policy = match.policy
        if policy is None or not _has_policy(match):
            return Start(event, match, Admission("running"), lineage=lineage)
        if (match.rule, event.id) in self._linked:
            return None
        group = group_key(policy, event.facts())
        active = ActiveRuns()
        if _counts_active_runs(match):
            active = self._active.setdefault((match.rule, group), active)
        starts = self.starts.setdefault(match.rule, [])
        admission = admit(policy, run_id(match.rule, event.id), event.recordedat, active, starts)
        return Start(event, match, admission, group, lineage)

    async def verify(self, connection: Connection) -> None:
        """Lock the active runs. `Conflict` if they are not those that were read."""
        if not self._active:
            return
        rules = {"rules": sorted({rule for rule, _ in self._active})}
        rows = await fetch_all(connection, "rules.dispatch/lock_active_runs", rules)
        if {ActiveRun(*row) for row in rows} != set(self.runs):
            raise Conflict("a run began or ended while the next was being admitted")

    async def put_starts(self, connection: Connection) -> None:
        limited = sorted(rule for rule, starts in self.starts.items() if starts)
        if limited:
            texts = [Jsonb([start.isoformat() for start in self.starts[rule]]) for rule in limited]
            await connection.execute(
                statement("rules.dispatch/put_starts"), {"rules": limited, "starts": texts}
            )


def _has_policy(match: Match) -> bool:
    return match.policy is not None and (match.policy.rate_limit is not None or _counts_active_runs(match))


def _counts_active_runs(match: Match) -> bool:
    """Whether the admission depends on the other active runs of the rule."""
    policy = match.policy
    return policy is not None and (policy.group_wait is not None or policy.overlap != "allow")
