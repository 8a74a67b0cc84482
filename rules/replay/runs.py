"""Simulates runs in memory: started, advanced, woken and cancelled as in the live system.

Guarantee: admission, runbooks and waits are the live code (`rules.dispatch`, `rules.runbook`). The
runs are in memory instead of Postgres, and steps are simulated (`rules.replay.perform`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from rules.actions.hold import SuppressionsById, held, is_holdable
from rules.actions.run import RunFacts, run_id
from rules.actions.steps.digest_results import DigestMaterial
from rules.actions.steps.due_step import DueStep
from rules.dispatch.admission import ActiveRuns, Admission, admit, admit_notification
from rules.dispatch.alarm_transitions import remind_of
from rules.dispatch.matcher import Match
from rules.dispatch.notifications import OPENED, notification_name
from rules.dispatch.wait_matcher import EventWait, match_waits
from rules.lanes.lineage import suppression
from rules.language.cel.steps import TRIGGER_FIELDS
from rules.replay.log import LogEntry
from rules.replay.notify import perform_notification
from rules.replay.perform import SimulatedTargets, StepResult, perform
from rules.replay.scheduler import EVENT, STEP, Scheduler
from rules.replay.simulated_run import Facts, SimulatedRun, has_ended, woken_entry
from rules.runbook import (
    AwaitedEvent,
    EmittedEvent,
    FinallyBegin,
    Outcome,
    RunEnd,
    StepAnswer,
    WaitTimer,
    advance,
    begin_finally,
)
from rules.runbook.effects import Effect
from rules.runbook.states import ACTIVE, ending_reason, ending_transition
from schemas.wire.alarm_events import is_transition
from tocsin.core.records import NewEvent


@dataclass(frozen=True)
class SimulationHooks:
    """The parts of a simulation that runs call."""

    scheduler: Scheduler
    now: Callable[[], datetime]
    append: Callable[[NewEvent, tuple[str, ...]], None]
    """Append an event with its lineage."""
    log: Callable[[LogEntry], None]
    alarm: Callable[[UUID | None], Facts]
    """The facts about an alarm."""
    digest_rows: Callable[[int, int], DigestMaterial]
    """The material of a digest: of the events of the previous run and of this one, by their seqs."""
    newest_seq: Callable[[], int]
    events_after: Callable[[int], Sequence[Facts]]
    """All events after a seq."""
    record: Callable[[Facts, tuple[str, ...]], None]
    """Record the datapoints of a step, with the lineage of its run."""
    suppressions: Callable[[Sequence[Facts]], SuppressionsById]
    """What suppresses these alarms now."""


class Runs:
    def __init__(self, hooks: SimulationHooks) -> None:
        self._hooks = hooks
        self._active: dict[UUID, SimulatedRun] = {}
        self._newest_seqs: dict[str, int] = {}
        """By rule, the seq of the event that started its last run."""
        self._starts: dict[str, list[datetime]] = {}
        self.targets = SimulatedTargets()

    def start(self, match: Match, event: Facts, alarm_id: UUID | None, lineage: tuple[str, ...]) -> None:
        at = self._hooks.now()
        id = run_id(match.rule, UUID(event["id"]))
        group = match.group_of(event, alarm_id)
        admission = self._admit(match, id, group, at, match.inactive or suppression(match.rule, lineage))
        if admission.joins is not None:
            self._active[admission.joins].events.append(event)
            self._notify_again(self._active[admission.joins], event)
            return
        for replaced in admission.replaces:
            self._cancel(self._active[replaced], f"replaced by {id}")
        after_seq = self._newest_seqs.get(match.rule, 0)
        self._newest_seqs[match.rule] = event["seq"]
        run = SimulatedRun(id, match, group, admission.state, [event], alarm_id, lineage, at, after_seq)
        if run.state in ACTIVE:
            self._active[id] = run
        self._log_state(run, admission.reason)
        if run.state == "running":
            self._begin(run)
        elif run.state == "gathering":
            assert admission.begins_at is not None
            self._hooks.scheduler.add(admission.begins_at, EVENT, partial(self._end_gathering, run))

    def see(self, event: Facts) -> None:
        """End the waits that an event meets, wake the notifications of its alarm, and end the runs
        whose alarms have all ended."""
        waits = [
            wait for run in self._active.values() for wait in run.waits.values() if run.state == "running"
        ]
        for met in match_waits(waits, [event]):
            run = self._active[met.wait.run_id]
            del run.waits[met.wait.step]
            self.targets.met_events[met.event_seq] = event
            self._wake(run, met.wait.step, {"attempt": met.wait.attempt, "met": met.event_seq})
        if event.get("alarm_id") is not None and is_transition(event):
            self._follow(event)

    def cancel_unstarted(self, ended: Mapping[str, str]) -> None:
        """Cancel the runs of ended rules (with the reason) that gather or are queued, as an apply does."""
        for run in list(self._active.values()):
            if run.match.rule in ended and run.state in ("gathering", "queued"):
                self._end(run, "cancelled", ended[run.match.rule])

    def wake_all_held(self, event: Facts, remind: str) -> None:
        """What suppresses alarms has changed."""
        for run in list(self._active.values()):
            if any("held" in entry for entry in run.active.values()):
                self._wake_suppressed(run, event, remind)

    def wake(self, alarm_ids: Collection[UUID], event: Facts, remind: str) -> None:
        """A suppression of these alarms has ended."""
        for run in list(self._active.values()):
            if set(alarm_ids) & set(run.alarm_ids):
                self._wake_suppressed(run, event, remind)

    def wake_held(self, key: str, event: Facts, remind: str) -> None:
        """The suppression with this key has ended."""
        for run in list(self._active.values()):
            if any(key in entry.get("held", ()) for entry in run.active.values()):
                self._wake_suppressed(run, event, remind)

    def _wake_suppressed(self, run: SimulatedRun, event: Facts, remind: str) -> None:
        if run.match.notify is not None:
            self._notify_again(run, event, remind)
        else:
            self._release(run)

    def _follow(self, event: Facts) -> None:
        """What `rules.dispatch.alarm_transitions` does."""
        reason, remind = ending_reason(event), remind_of(event["type"])
        transition = ending_transition(event)
        for run in list(self._active.values()):
            links = [link for link in run.events if link.get("alarm_id") == event["alarm_id"]]
            if not links or event["type"] == OPENED:
                continue
            if run.match.notify is not None:
                if event not in run.events:
                    run.events.append(event)
                self._notify_again(run, event, remind)
            elif reason is not None and transition in run.match.ends_with:
                is_started_before = links[0]["seq"] < event["seq"]
                if is_started_before and run.ending is None and has_ended(run, event, self._hooks.alarm):
                    self._cancel(run, reason)
            elif remind:
                self._release(run)

    def _release(self, run: SimulatedRun) -> None:
        """Make the held steps of a run due."""
        for step, entry in list(run.active.items()):
            if "held" in entry and entry["state"] == "waiting":
                run.active[step] = woken_entry(entry)
                self._schedule_step(run, int(step), entry["attempt"])

    def _notify_again(self, run: SimulatedRun, event: Facts, remind: str = "") -> None:
        """Wake a notification run, as wake_notifications.sql does."""
        entry = run.active.get("0")
        if run.match.notify is None or run.state != "running" or entry is None:
            return
        woken = {"seq": event["seq"], **({"remind": remind} if remind else {})}
        if entry["state"] == "due":
            run.active["0"] = {**entry, **woken}
        elif entry["state"] == "waiting" and (entry.get("rest", "gathering") != "gathering" or remind):
            run.active["0"] = woken_entry(entry, **woken)
            self._schedule_step(run, 0, entry["attempt"])

    def report(self, action: str, step: str | None, report: Facts) -> bool:
        """Report to the newest dispatched step of an action; false if none waits for a report."""
        for run in reversed(self._active.values()):
            if run.match.action != action:
                continue
            for number, entry in run.active.items():
                node = run.action_run(self._hooks.now()).node(int(number))
                is_step = step in (None, node.name, node.kind)
                if node.kind == "dispatch" and entry["state"] == "waiting" and is_step:
                    self._wake(run, int(number), {"attempt": entry["attempt"], "report": dict(report)})
                    return True
        return False

    def correlation_id(self, action: str) -> UUID | None:
        """The correlation id of the newest active run of an action."""
        for run in reversed(self._active.values()):
            if run.match.action == action:
                return UUID(run.events[0]["correlation_id"])
        return None

    def _admit(self, match: Match, id: UUID, group: str, at: datetime, suppressed: str | None) -> Admission:
        if suppressed is not None:
            return Admission("skipped", reason=suppressed)
        if match.policy is None and match.notify is None:
            return Admission("running")
        active = ActiveRuns()
        for run in self._active_of(match.rule, group):
            active.add(run.id, run.state)
        if match.policy is None:
            return admit_notification(id, active)
        return admit(match.policy, id, at, active, self._starts.setdefault(match.rule, []))

    def _active_of(self, rule: str, group: str) -> list[SimulatedRun]:
        return [run for run in self._active.values() if (run.match.rule, run.group) == (rule, group)]

    def _end_gathering(self, run: SimulatedRun) -> None:
        if run.state != "gathering":
            return
        others = [other for other in self._active_of(run.match.rule, run.group) if other is not run]
        is_queue = run.match.policy is not None and run.match.policy.overlap == "queue"
        if is_queue and any(other.state in ("queued", "running") for other in others):
            run.state = "queued"
        else:
            self._begin(run)
        self._log_state(run, None)

    def _begin(self, run: SimulatedRun) -> None:
        run.state = "running"
        run.active = {"0": {"attempt": 1, "state": "due"}}
        notify = run.match.notify
        if notify is not None and notify.group_wait is not None:
            run.active = {"0": {"attempt": 1, "state": "waiting", "rest": "gathering"}}
            wake = partial(self._wake, run, 0, {"attempt": 1})
            self._hooks.scheduler.add(run.started_at + notify.group_wait, EVENT, wake)
            return
        self._schedule_step(run, 0, 1)

    def _schedule_step(self, run: SimulatedRun, step: int, attempt: int) -> None:
        self._hooks.scheduler.add(self._hooks.now(), STEP, partial(self._perform, run, step, attempt))

    def _perform(self, run: SimulatedRun, step: int, attempt: int) -> None:
        action_run = run.action_run(self._hooks.now())
        if not action_run.is_due(step, attempt):
            return
        alarms = tuple(self._hooks.alarm(alarm_id) for alarm_id in run.alarm_ids)
        facts = RunFacts(run.events[0], tuple(run.events), self._hooks.alarm(run.alarm_id), alarms)
        due = DueStep(action_run, action_run.node(step), facts)
        suppressions = self._hooks.suppressions(alarms)
        if due.kind == "notify":
            self._perform_notification(run, due, suppressions)
            return
        hold = held(facts, suppressions, self._hooks.now()) if is_holdable(facts) else None
        if hold is not None:
            self._advance(run, due, StepResult(hold, {"reason": hold.reason}))
            return
        digest_rows = partial(self._hooks.digest_rows, run.after_seq, int(run.events[0]["seq"]))
        self._advance(run, due, perform(due, digest_rows, self.targets))

    def _advance(self, run: SimulatedRun, due: DueStep, result: StepResult) -> None:
        outcome = type(result.outcome).__name__.lower()
        error = getattr(result.outcome, "error", None)
        self._log_step(run, due, outcome, {**result.details, **({"error": error} if error else {})})
        if result.datapoints is not None and outcome == "completed":
            self._hooks.record(result.datapoints, due.run.next_lineage)
        self._apply_outcome(run, due, result.outcome)

    def _perform_notification(self, run: SimulatedRun, due: DueStep, suppressions: SuppressionsById) -> None:
        rested, deliveries = perform_notification(
            due, self.targets.channels, suppressions, self.targets.failures
        )
        for delivery in deliveries:
            outcome = "completed" if delivery.is_delivered else "failed"
            self._log_step(run, due, outcome, delivery.details, notification_name(delivery.channel))
        if rested.rest == "held":
            self._log_step(run, due, "held", {"reason": rested.answer.get("reason", "")})
        self._apply_outcome(run, due, rested)

    def _apply_outcome(self, run: SimulatedRun, due: DueStep, outcome: Outcome) -> None:
        step, at = due.node.number, self._hooks.now()
        after = advance(due.run.program, run.active, step, outcome, at, str(run.id), run.ending)
        run.active = after.active
        run.waits.pop(step, None)
        for effect in after.effects:
            self._apply(run, effect)
        if run.state == "running":
            for number, entry in after.active.items():
                if entry["state"] == "due":
                    self._schedule_step(run, int(number), entry["attempt"])

    def _apply(self, run: SimulatedRun, effect: Effect) -> None:
        if isinstance(effect, WaitTimer):
            wake = partial(self._wake, run, effect.step, dict(effect.entry))
            self._hooks.scheduler.add(effect.at, EVENT, wake)
        elif isinstance(effect, AwaitedEvent):
            trigger = {key: run.events[0][key] for key in TRIGGER_FIELDS}
            wait = EventWait(
                run.id, effect.step, effect.attempt, effect.condition, int(run.events[0]["seq"]), trigger
            )
            met = match_waits([wait], self._hooks.events_after(wait.after_seq))
            if met:
                entry = {"attempt": effect.attempt, "met": met[0].event_seq}
                self._hooks.scheduler.add(
                    self._hooks.now(), EVENT, partial(self._wake, run, effect.step, entry)
                )
            else:
                run.waits[effect.step] = wait._replace(after_seq=self._hooks.newest_seq())
        elif isinstance(effect, StepAnswer):
            run.answers[effect.name] = dict(effect.answer)
        elif isinstance(effect, EmittedEvent):
            self._hooks.append(effect.event, run.next_lineage)
        elif isinstance(effect, FinallyBegin):
            run.ending, run.reason = effect.ending, effect.error
        elif isinstance(effect, RunEnd):
            self._end(run, effect.state, effect.error or run.reason)

    def _wake(self, run: SimulatedRun, step: int, entry: dict[str, Any]) -> None:
        waiting = run.active.get(str(step), {})
        if run.state != "running" or waiting.get("state") != "waiting":
            return
        if run.match.notify is not None and waiting["attempt"] != entry["attempt"]:
            return
        run.active[str(step)] = {**waiting, **entry, "state": "due"}
        self._schedule_step(run, step, entry["attempt"])

    def _cancel(self, run: SimulatedRun, reason: str) -> None:
        """End a run, or begin its `finally`."""
        begun = None
        if run.state == "running":
            begun = begin_finally(run.action_run(self._hooks.now()).program, run.ending, reason)
        if begun is None:
            self._end(run, "cancelled", reason)
            return
        run.waits, run.active = {}, begun.active
        run.ending, run.reason = begun.ending, reason
        for number, entry in begun.active.items():
            self._schedule_step(run, int(number), entry["attempt"])

    def _end(self, run: SimulatedRun, state: str, reason: str | None) -> None:
        run.state, run.waits = state, {}
        self._active.pop(run.id, None)
        self._log_state(run, reason)
        of_group = self._active_of(run.match.rule, run.group)
        queued = [other for other in of_group if other.state == "queued"]
        if queued and not any(other.state == "running" for other in of_group):
            self._begin(queued[0])
            self._log_state(queued[0], None)

    def _log_state(self, run: SimulatedRun, reason: str | None) -> None:
        details = {"rule": run.match.rule, **({"reason": reason} if reason else {})}
        owner = run.events[0]["owner"]
        self._hooks.log(LogEntry(self._hooks.now(), "run", run.match.action, owner, run.state, details))

    def _log_step(
        self, run: SimulatedRun, due: DueStep, outcome: str, details: Mapping[str, Any], name: str = ""
    ) -> None:
        event = run.events[0]
        details = {"step": due.node.name, "step_kind": due.kind, "attempt": due.attempt, **details}
        self._hooks.log(
            LogEntry(
                self._hooks.now(),
                "step",
                name or run.match.action,
                event["owner"],
                outcome,
                details,
                run.match.rule,
                event,
            )
        )
