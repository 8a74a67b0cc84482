"""A runbook in virtual time: steps answer as the test says, timers fire when the clock gets
there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import yaml

from rules.runbook import (
    Advance,
    AwaitedEvent,
    Completed,
    Outcome,
    Paused,
    RunEnd,
    StepAnswer,
    StepRecord,
    TimedOut,
    WaitTimer,
    advance,
    compile_runbook,
    retry_dead_steps,
)
from rules.runbook.wait import outcome_of_wait
from schemas.documents.action import ActionDocument
from schemas.values.duration import format_duration, parse_duration
from tests.virtual_clock import VirtualClock

START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


class Simulation:
    """`answers` are the outcomes of a step by its name, in order; the last one stays. Without any,
    it is completed."""

    def __init__(self, steps: str, start: datetime = START, **answers: Outcome | Sequence[Outcome]) -> None:
        document = ActionDocument.model_validate({"name": "test", "steps": yaml.safe_load(steps)})
        self.program = compile_runbook(document)
        self.clock = VirtualClock(start)
        self.active: dict[str, dict[str, object]] = {}
        self.history: list[str] = []
        self.answers: dict[str, object] = {}
        self.finished: list[RunEnd] = []
        self.awaited: dict[int, str] = {}
        self._begun = start
        self._timers: dict[int, tuple[datetime, dict[str, object]]] = {}
        self._due: list[int] = []
        self._scripts = {
            name: [outcomes] if isinstance(outcomes, Outcome) else list(outcomes)
            for name, outcomes in answers.items()
        }
        first = Advance({})
        first.due(0)
        self._take(first)
        self._perform()

    @property
    def state(self) -> str:
        return self.finished[-1].state if self.finished else "running"

    def pass_time(self, duration: str) -> Simulation:
        """Fire each timer at its instant on the way."""
        until = self.clock.now() + parse_duration(duration)
        while self._timers:
            step, (at, entry) = min(self._timers.items(), key=lambda one: (one[1][0], one[0]))
            if at > until:
                break
            del self._timers[step]
            self.clock.move_to(at)
            self.awaited.pop(step, None)
            self._wake(step, entry)
        self.clock.move_to(until)
        return self

    def event_for(self, name: str) -> Simulation:
        """The event that a wait is waiting for comes."""
        step = self._number(name)
        assert step in self.awaited
        del self.awaited[step]
        self._timers.pop(step, None)
        self._wake(step, {"met": 7})
        return self

    def report(self, name: str, outcome: Outcome) -> Simulation:
        """Report the result of a dispatched message, as a service does."""
        step = self._number(name)
        assert self.active[str(step)]["state"] == "waiting"
        self._timers.pop(step, None)
        self.active[str(step)]["state"] = "due"
        self._apply_outcome(step, outcome)
        self._perform()
        return self

    def retry(self) -> Simulation:
        """Retry a dead run, as an operator does."""
        self._take(retry_dead_steps(self.program, self.active))
        self._perform()
        return self

    def _number(self, name: str) -> int:
        return next(node.number for node in self.program.nodes if node.name == name)

    def _wake(self, step: int, entry: dict[str, object]) -> None:
        """Make a step due, as the clock does."""
        self.active[str(step)] = {**self.active[str(step)], **entry, "state": "due"}
        self._due.append(step)
        self._perform()

    def _perform(self) -> None:
        while self._due:
            step = self._due.pop(0)
            self._apply_outcome(step, self._outcome(step))

    def _outcome(self, step: int) -> Outcome:
        node, entry = self.program.nodes[step], self.active[str(step)]
        if node.step.wait is not None:
            return outcome_of_wait(node.step.wait, entry, self.clock.now())
        if node.step.dispatch is not None and entry.get("lapsed"):
            return TimedOut("no report")
        if node.step.dispatch is not None and node.name not in self._scripts:
            return Paused(self.clock.now() + node.step.dispatch.within)
        script = self._scripts.get(node.name)
        if script is None:
            return Completed(branch=0) if node.kind == "branch" else Completed()
        return script.pop(0) if len(script) > 1 else script[0]

    def _apply_outcome(self, step: int, outcome: Outcome) -> None:
        after = advance(self.program, self.active, step, outcome, self.clock.now(), "salt")
        self._take(after)

    def _take(self, after: Advance) -> None:
        assert not self.finished or self.state != "completed"
        self.active = json.loads(json.dumps(after.active))
        for effect in after.effects:
            if isinstance(effect, StepRecord):
                self._note(effect)
            elif isinstance(effect, WaitTimer):
                self._timers[effect.step] = (effect.at, dict(effect.entry))
            elif isinstance(effect, AwaitedEvent):
                self.awaited[effect.step] = effect.condition
            elif isinstance(effect, StepAnswer):
                self.answers[effect.name] = dict(effect.answer)
            elif isinstance(effect, RunEnd):
                self.finished.append(effect)

    def _note(self, record: StepRecord) -> None:
        if record.state == "due":
            self._due.append(record.step)
            return
        node = self.program.nodes[record.step]
        again = f" ({record.attempt})" if record.attempt > 1 else ""
        since = format_duration(_whole_seconds(self.clock.now() - self._begun))
        self.history.append(f"{since} {node.name} {record.state}{again}")


def _whole_seconds(duration: timedelta) -> timedelta:
    return timedelta(seconds=round(duration.total_seconds()))
