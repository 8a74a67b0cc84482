"""Rules in virtual time: datapoints and events at instants, and the alarms that follow.

A scenario is a shell around the engine, as live workers and backtests are: it keeps states, timers
and alarms in memory, carries out the effects, and fails on any that does not fit. Instants are
durations since the start: `at("10m").send(71.2)`.
"""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from rules.alarms.rule_change import rules_to_reevaluate
from rules.documents.load import load_text
from rules.engine import (
    BLANK,
    ArmSustain,
    Arrival,
    CancelSustain,
    Changed,
    CompiledRules,
    Describe,
    DropPending,
    Effect,
    EventSeen,
    Input,
    Open,
    Pend,
    Resolve,
    Rule,
    RuleState,
    TypeIndex,
    Value,
    WentStale,
    adopt,
    end,
    pass_time,
    step,
)
from schemas.documents import DatapointTypeDocument, EventRuleDocument
from schemas.values.duration import format_duration, parse_duration

T0 = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
PLANT = "plant-7"
KEY = "dsp.temperature"


def rule(*lines: str, name: str = "dsp-hot", datapoint: str = KEY) -> str:
    body = "".join(f"  {line}\n" for line in lines)
    return f"---\nevent_rule:\n  name: {name}\n  datapoint: '{datapoint}'\n{body}"


def watched(*lines: str, name: str = "temperature", key: str = KEY) -> str:
    """A type whose series are stale after five minutes."""
    body = "".join(f"  {line}\n" for line in lines)
    return f"---\ndatapoint_type:\n  name: {name}\n  key: '{key}'\n  interval: 2m\n{body}"


class Scenario:
    def __init__(self, rules: str, *, is_stored: bool = False, is_lazy: bool = False) -> None:
        """`is_stored`: every state is stored as JSON and read back after every step. `is_lazy`:
        `advance` is never called, so that inputs alone handle sustains."""
        self.now = T0
        self._states: dict[tuple[str, str, str], RuleState] = {}
        self._alarms: dict[uuid.UUID, str] = {}
        self._timers: dict[tuple[uuid.UUID, str], datetime] = {}
        self._effects: list[Effect] = []
        self._log: list[str] = []
        self.is_lazy = is_lazy
        self._is_stored = is_stored
        self._last: dict[tuple[str, str], Arrival] = {}
        self._stale: dict[tuple[str, str], Arrival] = {}
        self._applied_at = T0
        self._rules = CompiledRules(())
        self.apply(rules)

    def apply(self, text: str) -> Self:
        """Replace the rules.

        Alarms of removed rules are resolved, and changed rules evaluate the stale series.
        """
        models = [document.model for document in load_text(text).documents]
        types = TypeIndex(model for model in models if isinstance(model, DatapointTypeDocument))
        rules = [Rule(model, types) for model in models if isinstance(model, EventRuleDocument)]
        before, self._rules, self._applied_at = self._rules, CompiledRules(rules, types), self.now
        for key, state in list(self._states.items()):
            rule = self._rules.rules.get(key[0])
            if rule is not None:
                self._keep(key, *adopt(rule, state, self.now))
            else:
                self._keep(key, *end(state, self.now, "rule-removed", "the rule was removed"))
                del self._states[key]
        reevaluated = rules_to_reevaluate(before, self._rules)
        for _, last in sorted(self._stale.items()):
            for rule in self._rules.for_key(last.key):
                if rule.name in reevaluated:
                    self._step(rule, WentStale(self.now, last.owner, last.key, last.at, *last[4:7]))
        return self

    @property
    def states(self) -> dict[tuple[str, str, str], RuleState]:
        return self._settled()._states

    @property
    def alarms(self) -> dict[uuid.UUID, str]:
        return self._settled()._alarms

    @property
    def timers(self) -> dict[tuple[uuid.UUID, str], datetime]:
        return self._settled()._timers

    @property
    def effects(self) -> list[Effect]:
        return self._settled()._effects

    @property
    def log(self) -> list[str]:
        return self._settled()._log

    def _settled(self) -> Self:
        """No input of this instant follows: what is due now happens."""
        if not self.is_lazy:
            for key, state in list(self._states.items()):
                self._keep(key, *self._passed(key, state, self.now))
        return self

    def _passed(
        self, key: tuple[str, str, str], state: RuleState, until: datetime
    ) -> tuple[RuleState, tuple[Effect, ...]]:
        rule = self._rules.rules.get(key[0])
        return (state, ()) if rule is None else pass_time(rule, key[1], state, until)

    @property
    def rule(self) -> Rule:
        (rule,) = self._rules.rules.values()
        return rule

    def at(self, elapsed: str) -> Self:
        return self.wait_until(T0 + parse_duration(elapsed))

    def wait_until(self, until: datetime) -> Self:
        """Time passes: everything before `until` comes due, each at its instant, and staleness at
        `until` itself. Sustains at `until` come after its inputs."""
        while True:
            states = () if self.is_lazy else self._states.values()
            dues = [at for state in states for at in (state.due_at, state.recheck_at) if at is not None]
            stale = [
                (deadline, series)
                for series, last in self._last.items()
                if (deadline := self._deadline(last))
            ]
            due = min(
                (*(at for at in dues if at < until), *(at for at, _ in stale if at <= until)), default=None
            )
            if due is None:
                break
            self.now = max(self.now, due)
            for deadline, series in sorted(stale):
                if deadline == due:
                    last = self._stale[series] = self._last.pop(series)
                    self._evaluate(last.key, WentStale(due, last.owner, last.key, last.at, *last[4:7]))
            if not self.is_lazy and due < until:
                for key, state in list(self._states.items()):
                    self._keep(key, *self._passed(key, state, due))
        self.now = until
        return self

    def send(self, value: Value, key: str = KEY, owner: str = PLANT, **labels: str) -> Self:
        """A datapoint arrives now. Its own time must have no effect."""
        key = self._rules.types.series_key(key, labels)
        arrival = Arrival(self.now, 1, owner, key, value, self.now - timedelta(hours=1), labels)
        self._last[owner, key] = arrival
        self._stale.pop((owner, key), None)
        self._evaluate(key, arrival)
        return self

    def send_late(self, value: Value, key: str = KEY, owner: str = PLANT) -> Self:
        """A datapoint arrives now whose own time is older than that of the one before."""
        last = self._last.get((owner, key)) or self._stale[owner, key]
        arrival = Arrival(self.now, 1, owner, key, value, last.ts - timedelta(hours=1), {}, is_late=True)
        self._last[owner, key] = last._replace(at=self.now)
        self._stale.pop((owner, key), None)
        self._evaluate(key, arrival)
        return self

    def emit(self, type: str, owner: str = PLANT, **fields: Any) -> Self:
        facts = {"id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{type}{self.now}")), "type": type, "owner": owner}
        for rule in self._rules.for_event(type):
            self._step(rule, EventSeen(self.now, {**facts, **fields}))
        return self

    def messages(self) -> list[str]:
        return [effect.payload["message"] for effect in self.transitions()]

    def transitions(self) -> list[Open | Changed | Resolve]:
        return [effect for effect in self.effects if isinstance(effect, Open | Changed | Resolve)]

    def _deadline(self, last: Arrival) -> datetime | None:
        deadline = self._rules.types.stale_after(last.key)
        # A tolerance that was applied after the arrival counts from the apply.
        return None if deadline is None else max(last.at + deadline, self._applied_at)

    def _evaluate(self, key: str, input: Input) -> None:
        for rule in self._rules.for_key(key):
            self._step(rule, input)

    def _step(self, rule: Rule, input: Input) -> None:
        key = rule.name, input.owner, rule.instance_of(input)
        self._keep(key, *step(rule, self._states.get(key, BLANK), input))

    def _keep(self, key: tuple[str, str, str], state: RuleState, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            self._carry_out(effect)
        self._effects += effects
        if self._is_stored:
            stored = RuleState.from_json(json.loads(json.dumps(state.to_json())))
            assert stored == state
            state = stored
        self._states[key] = state
        armed = [timer for timer in self._timers if state.alarm is not None and timer[0] == state.alarm.id]
        assert len(armed) == (1 if state.due_at else 0)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Pend(alarm):
                assert alarm.id not in self._alarms
                self._alarms[alarm.id] = "pending"
            case DropPending(alarm_id):
                assert self._alarms.pop(alarm_id) == "pending"
            case ArmSustain(alarm_id, key, at):
                assert at > self.now or key == "open"
                assert self._alarms[alarm_id] == {"open": "pending", "clear": "open"}[key]
                self._timers[alarm_id, key] = at
            case CancelSustain(alarm_id, key):
                del self._timers[alarm_id, key]
            case Open(alarm, at):
                assert self._alarms.get(alarm.id, "pending") == "pending"
                self._alarms[alarm.id] = "open"
                self._log_transition(at, "opened", alarm.rule, alarm.owner)
            case Describe(alarm):
                assert self._alarms[alarm.id] == "pending"
            case Changed(alarm, at):
                assert self._alarms[alarm.id] == "open"
                self._log_transition(at, "changed", alarm.rule, alarm.owner)
            case Resolve(alarm, at):
                assert self._alarms[alarm.id] == "open"
                self._alarms[alarm.id] = "resolved"
                self._log_transition(at, "resolved", alarm.rule, alarm.owner)

    def _log_transition(self, at: datetime, transition: str, rule: str, owner: str) -> None:
        assert at <= self.now
        of = "" if owner == PLANT else f" of {owner}"
        self._log.append(f"{format_duration(at - T0)} {transition} {rule}{of}")
