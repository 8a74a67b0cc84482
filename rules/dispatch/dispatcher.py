"""Dispatch: events start the actions of the rules that match them.

Guarantee (I7): an action starts at most once per (action_rule, event). The record lane brings each event once, in
order, and its position moves in the transaction that starts the actions; that the pair is unique in the table as well
holds whatever else may happen. What a rule says about limits, groups and overlaps is decided by `admission` from the
runs that it has; they are locked before anything is written, and a run that began or ended meanwhile is `Conflict`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import structlog
from psycopg.types.json import Jsonb

from rules.actions.cancel import CancelActions
from rules.dispatch.admission import Admission, Standing, admit, group_key
from rules.dispatch.matcher import Judge, Match
from rules.documents.rule_book import RuleBook
from rules.lanes.batch import Writes
from rules.lanes.lineage import read_lineages, suppression
from schemas.wire.event import Event
from tocsin.core.db import Connection, fetch_all, statement
from tocsin.core.errors import Conflict, InvalidInput
from tocsin.core.records import NewStep, Records

_log = structlog.get_logger()
_ACTIONS = uuid.UUID("0b7c6ce5-0f0b-5d0e-8b0a-6f2d4f5f9a21")


@dataclass(frozen=True)
class Start:
    event: Event
    match: Match
    admission: Admission
    group: str = ""
    lineage: tuple[str, ...] = ()
    """The rules that led to the event."""

    @property
    def id(self) -> uuid.UUID:
        return self.admission.joins or action_id(self.match.rule, self.event.id)


class Run(NamedTuple):
    """A run that is under way, as it was read."""

    rule: str
    group: str
    id: uuid.UUID
    state: str


def action_id(rule: str, event_id: uuid.UUID) -> uuid.UUID:
    return uuid.uuid5(_ACTIONS, f"{rule}/{event_id}")


class Dispatcher:
    def __init__(self) -> None:
        self._book = RuleBook(Judge, *Judge.KINDS)

    async def plan(self, connection: Connection, events: Sequence[Event]) -> StartActions:
        if events:
            await self._book.refresh(connection, min(event.seq for event in events))
        matches = [(event, match) for event in events for match in self._matches(event)]
        lineages = await _lineages(connection, [event for event, _ in matches])
        policies = await Policies.read(connection, matches)
        starts = [policies.start(event, match, lineages.get(event.id, ())) for event, match in matches]
        return StartActions([start for start in starts if start is not None], policies)

    def _matches(self, event: Event) -> list[Match]:
        try:
            return self._book.at(event.seq).judge(event.facts())
        except InvalidInput as error:
            _log.error("event cannot be judged", seq=event.seq, error=error)
            return []


class Policies:
    """What limits, groups and overlaps are decided from; follows the starts of the batch."""

    def __init__(
        self,
        runs: Sequence[Run] = (),
        starts: Mapping[str, list[datetime]] | None = None,
        linked: frozenset[tuple[str, uuid.UUID]] = frozenset(),
    ) -> None:
        self.runs = runs
        self.starts = dict(starts or {})
        self._linked = linked
        self._standings: dict[tuple[str, str], Standing] = {}
        for run in runs:
            standing = self._standings.setdefault((run.rule, run.group), Standing())
            if run.state == "gathering":
                standing.gathering = run.id
            else:
                standing.under_way.append(run.id)

    @classmethod
    async def read(cls, connection: Connection, matches: Sequence[tuple[Event, Match]]) -> Policies:
        """Only of rules that have a policy; most have none, and nothing is read."""
        bound = [(event, match) for event, match in matches if _is_bound(match)]
        if not bound:
            return cls()
        rules = {"rules": sorted({match.rule for _, match in bound})}
        in_turn = {"rules": sorted({match.rule for _, match in bound if _takes_turns(match)})}
        runs = await fetch_all(connection, "rules.dispatch/read_standings", in_turn)
        starts = await fetch_all(connection, "rules.dispatch/read_starts", rules)
        pairs = {
            "rules": [match.rule for _, match in bound],
            "event_ids": [event.id for event, _ in bound],
        }
        linked = await fetch_all(connection, "rules.dispatch/find_linked", pairs)
        return cls([Run(*run) for run in runs], dict(starts), frozenset(linked))

    def start(self, event: Event, match: Match, lineage: tuple[str, ...]) -> Start | None:
        """None if the event has an action of this rule already."""
        suppressed = suppression(match.rule, lineage)
        if suppressed is not None:
            return Start(event, match, Admission("skipped", reason=suppressed), lineage=lineage)
        policy = match.policy
        if policy is None or not _is_bound(match):
            return Start(event, match, Admission("running"), lineage=lineage)
        if (match.rule, event.id) in self._linked:
            return None
        group = group_key(policy, event.facts())
        standing = Standing()
        if _takes_turns(match):
            standing = self._standings.setdefault((match.rule, group), standing)
        starts = self.starts.setdefault(match.rule, [])
        admission = admit(policy, action_id(match.rule, event.id), event.recordedat, standing, starts)
        return Start(event, match, admission, group, lineage)

    async def verify(self, connection: Connection) -> None:
        """The runs are still those that were read, and stay so until the commit."""
        if not self._standings:
            return
        rules = {"rules": sorted({rule for rule, _ in self._standings})}
        rows = await fetch_all(connection, "rules.dispatch/lock_standings", rules)
        if {Run(*row) for row in rows} != set(self.runs):
            raise Conflict("a run began or ended while the next was being admitted")

    async def put_starts(self, connection: Connection) -> None:
        limited = sorted(rule for rule, starts in self.starts.items() if starts)
        if limited:
            texts = [Jsonb([start.isoformat() for start in self.starts[rule]]) for rule in limited]
            await connection.execute(
                statement("rules.dispatch/put_starts"), {"rules": limited, "starts": texts}
            )


def _is_bound(match: Match) -> bool:
    return match.policy is not None and (match.policy.rate_limit is not None or _takes_turns(match))


def _takes_turns(match: Match) -> bool:
    """Whether it matters which other runs of the rule are under way."""
    policy = match.policy
    return policy is not None and (policy.group_wait is not None or policy.overlap != "allow")


async def _lineages(connection: Connection, events: Sequence[Event]) -> Mapping[uuid.UUID, tuple[str, ...]]:
    """Only what an action may have caused has one."""
    ids = {event.id for event in events if event.origin in ("external", "caused")}
    return await read_lineages(connection, ids) if ids else {}


class StartActions(Writes):
    """Action rows, and the first step of each that is new: as due, or as skipped with the reason."""

    def __init__(self, starts: Sequence[Start], policies: Policies) -> None:
        self._starts = starts
        self._policies = policies
        replaced = {one: f"replaced by {start.id}" for start in starts for one in start.admission.replaces}
        self._cancelling = CancelActions(replaced)
        # A run that this very batch began and replaced never was one.
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

    def actions(self) -> Iterable[uuid.UUID]:
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

    def records(self) -> Records:
        return Records.joined([self._cancelling.records(), Records(steps=self.steps)])
