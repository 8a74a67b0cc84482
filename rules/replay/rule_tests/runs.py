"""Actions of a simulation: admitted, begun, advanced, woken and cancelled by the live code, kept in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from rules.actions.run import ActionRun, RunFacts, run_id
from rules.actions.steps.due_step import DueStep
from rules.dispatch.admission import ActiveRuns, Admission, admit, group_key
from rules.dispatch.matcher import Match
from rules.dispatch.wait_matcher import EventWait, match_waits
from rules.lanes.lineage import suppression
from rules.language.cel.steps import TRIGGER_FIELDS
from rules.replay.rule_tests.log import Happening
from rules.replay.rule_tests.perform import Failure, Said, perform
from rules.replay.rule_tests.scheduler import EVENT, STEP, Agenda
from rules.runbook import Answered, Armed, Awaited, Emitted, Finished, advance
from rules.runbook.states import ACTIVE, ending_reason, ends_with_alarm
from tocsin.core.records import NewEvent

Facts = Mapping[str, Any]


@dataclass
class Run:
    id: UUID
    match: Match
    group: str
    state: str
    events: list[Facts]
    alarm_id: UUID | None
    lineage: tuple[str, ...]
    started_at: datetime
    after: int
    """The seq of the event that started the rule's run before."""
    active: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    waits: dict[int, EventWait] = field(default_factory=dict)

    def action(self, at: datetime) -> ActionRun:
        event = self.events[0]
        return ActionRun(
            id=self.id,
            name=self.match.action,
            rule=self.match.rule,
            group_key=self.group,
            document=self.match.document,
            state=self.state,
            active=self.active,
            answers=self.answers,
            owner=event["owner"],
            alarm_id=self.alarm_id,
            event_id=UUID(event["id"]),
            event_seq=event["seq"],
            correlation_id=UUID(event["correlation_id"]),
            lineage=self.lineage,
            version=1,
            started_at=self.started_at,
            at=at,
        )


@dataclass(frozen=True)
class Surroundings:
    """What runs need of the rest of the world."""

    agenda: Agenda
    now: Callable[[], datetime]
    append: Callable[[NewEvent, tuple[str, ...]], None]
    note: Callable[[Happening], None]
    alarm: Callable[[UUID | None], Facts]
    looks: Callable[[int, int], Facts]
    """What a digest finds, with the events behind one seq and before another."""
    newest: Callable[[], int]
    record: Callable[[Facts], None]


class Runs:
    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._runs: dict[UUID, Run] = {}
        """Those under way."""
        self._newest: dict[str, int] = {}
        """By rule, the seq of the event that started its last run."""
        self._starts: dict[str, list[datetime]] = {}
        self.failures: list[Failure] = []

    def start(self, found: Match, event: Facts, alarm_id: UUID | None, lineage: tuple[str, ...]) -> None:
        at = self._around.now()
        id = run_id(found.rule, UUID(event["id"]))
        group = "" if found.policy is None else group_key(found.policy, event)
        admission = self._admitted(found, id, group, at, suppression(found.rule, lineage))
        if admission.joins is not None:
            self._runs[admission.joins].events.append(event)
            return
        for replaced in admission.replaces:
            self._end(self._runs[replaced], "cancelled", f"replaced by {id}")
        after = self._newest.get(found.rule, 0)
        self._newest[found.rule] = event["seq"]
        run = Run(id, found, group, admission.state, [event], alarm_id, lineage, at, after)
        if run.state in ACTIVE:
            self._runs[id] = run
        self._say(run, admission.state, {"reason": admission.reason} if admission.reason else {})
        if run.state == "running":
            self._begin(run)
        elif run.state == "gathering" and found.policy is not None and found.policy.group_wait is not None:
            self._around.agenda.add(at + found.policy.group_wait, EVENT, partial(self._gathered, run))

    def _admitted(
        self, found: Match, id: UUID, group: str, at: datetime, suppressed: str | None
    ) -> Admission:
        if suppressed is not None:
            return Admission("skipped", reason=suppressed)
        if found.policy is None:
            return Admission("running")
        active = ActiveRuns()
        for run in self._of(found.rule, group):
            if run.state == "gathering":
                active.gathering = run.id
            else:
                active.begun.append(run.id)
        return admit(found.policy, id, at, active, self._starts.setdefault(found.rule, []))

    def _of(self, rule: str, group: str) -> list[Run]:
        return [run for run in self._runs.values() if (run.match.rule, run.group) == (rule, group)]

    def _gathered(self, run: Run) -> None:
        if run.state == "gathering":
            self._begin(run)

    def _begin(self, run: Run) -> None:
        run.state = "running"
        run.active = {"0": {"attempt": 1, "state": "due"}}
        self._due(run, 0, 1)

    def _due(self, run: Run, step: int, attempt: int) -> None:
        self._around.agenda.add(self._around.now(), STEP, partial(self._perform, run, step, attempt))

    def _perform(self, run: Run, step: int, attempt: int) -> None:
        at = self._around.now()
        action = run.action(at)
        if not action.is_due(step, attempt):
            return
        facts = RunFacts(run.events[0], tuple(run.events), self._around.alarm(run.alarm_id))
        due = DueStep(action, action.node(step), facts)
        looks = partial(self._around.looks, run.after, int(run.events[0]["seq"]))
        done = perform(due, looks, self.failures)
        self._settle(run, due, done)

    def _settle(self, run: Run, due: DueStep, done: Said) -> None:
        step, at = due.node.number, self._around.now()
        after = advance(due.run.program, run.active, step, done.outcome, at, str(run.id))
        run.active = after.active
        run.waits.pop(step, None)
        outcome = type(done.outcome).__name__.lower()
        facts = {"step": due.node.name, "step_kind": due.kind, "attempt": due.attempt, **done.said}
        event = run.events[0]
        self._around.note(
            Happening(at, "step", run.match.action, event["owner"], outcome, facts, run.match.rule, event)
        )
        if done.datapoints is not None and outcome == "completed":
            self._around.record(done.datapoints)
        for effect in after.effects:
            if isinstance(effect, Armed):
                wake = partial(self._wake, run, effect.step, dict(effect.entry))
                self._around.agenda.add(effect.at, EVENT, wake)
            elif isinstance(effect, Awaited):
                trigger = {key: run.events[0][key] for key in TRIGGER_FIELDS}
                run.waits[effect.step] = EventWait(
                    run.id, effect.step, effect.attempt, effect.condition, self._around.newest(), trigger
                )
            elif isinstance(effect, Answered):
                run.answers[effect.name] = dict(effect.answer)
            elif isinstance(effect, Emitted):
                self._around.append(effect.event, (*run.lineage, run.match.rule))
            elif isinstance(effect, Finished):
                self._end(run, effect.state, effect.error)
        if run.state == "running":
            for number, entry in after.active.items():
                if entry["state"] == "due":
                    self._due(run, int(number), entry["attempt"])

    def _wake(self, run: Run, step: int, entry: dict[str, Any]) -> None:
        waiting = run.active.get(str(step), {})
        if run.state != "running" or waiting.get("state") != "waiting":
            return
        run.active[str(step)] = {**waiting, **entry, "state": "due"}
        self._due(run, step, entry["attempt"])

    def see(self, event: Facts) -> None:
        """An event ends the waits that it meets; the end or acknowledgement of an alarm ends what it started."""
        waits = [wait for run in self._runs.values() for wait in run.waits.values() if run.state == "running"]
        for met in match_waits(waits, [event]):
            run = self._runs[met.wait.run_id]
            del run.waits[met.wait.step]
            entry = {"attempt": met.wait.attempt, "met": met.event_seq}
            self._wake(run, met.wait.step, entry)
        reason = ending_reason(event["type"])
        if reason is None or event.get("alarm_id") is None:
            return
        for run in list(self._runs.values()):
            started_before = run.alarm_id == event["alarm_id"] and run.events[0]["seq"] < event["seq"]
            if started_before and ends_with_alarm(run.match.rule):
                self._end(run, "cancelled", reason)

    def _end(self, run: Run, state: str, why: str | None) -> None:
        run.state, run.waits = state, {}
        self._runs.pop(run.id, None)
        self._say(run, state, {"reason": why} if why else {})
        queued = [one for one in self._of(run.match.rule, run.group) if one.state == "queued"]
        if queued and not any(one.state == "running" for one in self._of(run.match.rule, run.group)):
            self._begin(queued[0])

    def _say(self, run: Run, state: str, facts: Mapping[str, Any]) -> None:
        owner = run.events[0]["owner"]
        self._around.note(
            Happening(
                self._around.now(), "run", run.match.action, owner, state, {"rule": run.match.rule, **facts}
            )
        )
