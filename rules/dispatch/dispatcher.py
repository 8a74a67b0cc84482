"""The dispatcher: starts runs for the events of a batch, in the record lane.

Guarantee (I7): an action starts at most once per (action_rule, event). The record lane delivers
each event once, in order, and its position moves in the transaction that starts the runs; the table
holds the pair unique as well. `admission` decides about rate limits, groups and overlaps from the
active runs. These are locked before anything is written; if a run began or ended since they were
read, the batch is a `Conflict` and planned again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import structlog
from psycopg.types.json import Jsonb

from rules.actions.cancel import CancelRuns
from rules.actions.run import run_id
from rules.dispatch.admission import ActiveRuns, Admission, admit, group_key
from rules.dispatch.matcher import ActionMatcher, Match
from rules.documents.rule_book import RuleBook
from rules.lanes.batch import Writes
from rules.lanes.lineage import suppression
from rules.lanes.lineage_store import read_lineages
from schemas.wire.event import Event
from tocsin.core.db import Connection, fetch_all, statement
from tocsin.core.errors import Conflict, InvalidInput
from tocsin.core.records import NewRecords, NewStep

_log = structlog.get_logger()


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


class Dispatcher:
    """Takes part in the record lane."""

    def __init__(self) -> None:
        self._book = RuleBook(ActionMatcher, *ActionMatcher.KINDS)

    async def plan(self, connection: Connection, events: Sequence[Event]) -> StartRuns:
        if events:
            await self._book.refresh(connection, min(event.seq for event in events))
        matches = [(event, match) for event in events for match in self._match(event)]
        lineages = await _read_lineages(connection, [event for event, _ in matches])
        policies = await Policies.read(connection, matches)
        starts = [policies.start(event, match, lineages.get(event.id, ())) for event, match in matches]
        return StartRuns([start for start in starts if start is not None], policies)

    def _match(self, event: Event) -> list[Match]:
        try:
            return self._book.at(event.seq).match(event.facts())
        except InvalidInput as error:
            _log.error("event cannot be evaluated", seq=event.seq, error=error)
            return []


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


async def _read_lineages(connection: Connection, events: Sequence[Event]) -> Mapping[UUID, tuple[str, ...]]:
    """Only events that a run may have caused have a lineage."""
    ids = {event.id for event in events if event.origin in ("external", "caused")}
    return await read_lineages(connection, ids) if ids else {}


class StartRuns(Writes):
    """Writes the rows of new runs, and the first step of each: as due, or as skipped with the
    reason."""

    def __init__(self, starts: Sequence[Start], policies: Policies) -> None:
        self._starts = starts
        self._policies = policies
        replaced = {id: f"replaced by {start.id}" for start in starts for id in start.admission.replaces}
        self._cancelling = CancelRuns(replaced)
        # A run that this batch both starts and replaces is written as skipped.
        self._replaced = replaced.keys()
        self.steps: list[NewStep] = []

    async def timers(self, connection: Connection) -> None:
        await self._cancelling.timers(connection)
        groups = {
            str(start.id): start.event.recordedat + start.match.policy.group_wait
            for start in self._starts
            if start.admission.state == "gathering"
            and start.admission.joins is None
            and start.match.policy is not None
            and start.match.policy.group_wait is not None
        }
        if groups:
            await connection.execute(
                statement("rules.dispatch/arm_groups"), {"refs": list(groups), "at": list(groups.values())}
            )

    def actions(self) -> Iterable[UUID]:
        return [run.id for run in self._policies.runs]

    async def entities(self, connection: Connection) -> None:
        if not self._starts:
            return
        await self._policies.verify(connection)
        await self._cancelling.entities(connection)
        rows = await fetch_all(connection, "rules.dispatch/start_actions", self._columns())
        self.steps = [
            NewStep(
                action_id=id,
                name=name,
                owner=owner,
                step=0,
                attempt=1,
                state="due" if state == "running" else "skipped",
                correlation_id=correlation_id,
                source_event_id=event_id,
                result={} if reason is None else {"reason": reason},
            )
            for id, name, owner, event_id, correlation_id, state, reason in rows
            if state in ("running", "skipped")
        ]
        await self._policies.put_starts(connection)
        for step in self.steps:
            if step.state == "skipped":
                _log.warning("action skipped", action=step.name, id=step.action_id, **step.result)

    def _columns(self) -> dict[str, list[Any]]:
        starts = self._starts
        return {
            "ids": [start.id for start in starts],
            "names": [start.match.action for start in starts],
            "rules": [start.match.rule for start in starts],
            "groups": [start.group for start in starts],
            "states": [
                "skipped" if start.id in self._replaced else start.admission.state for start in starts
            ],
            "joins": [start.admission.joins is not None for start in starts],
            "reasons": [self._reason(start) for start in starts],
            "event_ids": [start.event.id for start in starts],
            "event_seqs": [start.event.seq for start in starts],
            "documents": [Jsonb(start.match.document) for start in starts],
            "owners": [start.event.owner for start in starts],
            "correlations": [start.event.correlationid for start in starts],
            "alarms": [start.event.alarmid for start in starts],
            "lineages": [Jsonb(list(start.lineage)) for start in starts],
        }

    def _reason(self, start: Start) -> str | None:
        return "overlap: replaced before it began" if start.id in self._replaced else start.admission.reason

    def records(self) -> NewRecords:
        return NewRecords.joined([self._cancelling.records(), NewRecords(steps=self.steps)])
