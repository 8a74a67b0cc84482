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
    CompiledRules,
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
    advance,
    end,
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
        self.states: dict[tuple[str, str, str], RuleState] = {}
        self.alarms: dict[uuid.UUID, str] = {}
        self.timers: dict[tuple[uuid.UUID, str], datetime] = {}
        self.effects: list[Effect] = []
        self.log: list[str] = []
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
        for key, state in list(self.states.items()):
            rule = self._rules.rules.get(key[0])
            if rule is not None:
                self._keep(key, *adopt(rule, state, self.now))
            else:
                self._keep(key, *end(state, self.now, "rule-removed", "the rule was removed"))
                del self.states[key]
        reevaluated = rules_to_reevaluate(before, self._rules)
        for _, last in sorted(self._stale.items()):
            for rule in self._rules.for_key(last.key):
                if rule.name in reevaluated:
                    self._step(rule, WentStale(self.now, last.owner, last.key, last.at, *last[4:]))
        return self

    @property
    def rule(self) -> Rule:
        (rule,) = self._rules.rules.values()
        return rule

    def at(self, elapsed: str) -> Self:
        return self.wait_until(T0 + parse_duration(elapsed))

    def wait_until(self, until: datetime) -> Self:
        """Time passes: deadlines come due, each at its instant, sustains before watchdogs."""
        while True:
            states = () if self.is_lazy else self.states.values()
            sustains = [state.due_at for state in states if state.due_at]
            stale = [
                (self._deadline(one), series) for series, one in self._last.items() if self._deadline(one)
            ]
            due = min((*sustains, *(at for at, _ in stale if at)), default=None)
            if due is None or due > until:
                break
            self.now = max(self.now, due)
            for key, state in list(self.states.items()):
                if not self.is_lazy:
                    self._keep(key, *advance(state, due))
            for at, series in sorted(stale, key=lambda one: (str(one[0]), one[1])):
                if at == due:
                    last = self._stale[series] = self._last.pop(series)
                    self._evaluate(last.key, WentStale(due, last.owner, last.key, last.at, *last[4:]))
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

    def emit(self, type: str, owner: str = PLANT, **fields: Any) -> Self:
        facts = {"id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{type}{self.now}")), "type": type, "owner": owner}
        for rule in self._rules.for_event(type):
            self._step(rule, EventSeen(self.now, {**facts, **fields}))
        return self

    def messages(self) -> list[str]:
        return [effect.payload["message"] for effect in self.transitions()]

    def transitions(self) -> list[Open | Resolve]:
        return [effect for effect in self.effects if isinstance(effect, Open | Resolve)]

    def _deadline(self, last: Arrival) -> datetime | None:
        deadline = self._rules.types.stale_after(last.key)
        # A tolerance that was applied after the arrival counts from the apply.
        return None if deadline is None else max(last.at + deadline, self._applied_at)

    def _evaluate(self, key: str, input: Input) -> None:
        for rule in self._rules.for_key(key):
            self._step(rule, input)

    def _step(self, rule: Rule, input: Input) -> None:
        key = rule.name, input.owner, rule.instance_of(input)
        self._keep(key, *step(rule, self.states.get(key, BLANK), input))

    def _keep(self, key: tuple[str, str, str], state: RuleState, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            self._carry_out(effect)
        self.effects += effects
        if self._is_stored:
            stored = RuleState.from_json(json.loads(json.dumps(state.to_json())))
            assert stored == state
            state = stored
        self.states[key] = state
        armed = [timer for timer in self.timers if state.alarm is not None and timer[0] == state.alarm.id]
        assert len(armed) == (1 if state.due_at else 0)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Pend(alarm):
                assert alarm.id not in self.alarms
                self.alarms[alarm.id] = "pending"
            case DropPending(alarm_id):
                assert self.alarms.pop(alarm_id) == "pending"
            case ArmSustain(alarm_id, key, at):
                assert at > self.now
                assert self.alarms[alarm_id] == {"open": "pending", "clear": "open"}[key]
                self.timers[alarm_id, key] = at
            case CancelSustain(alarm_id, key):
                del self.timers[alarm_id, key]
            case Open(alarm, at):
                assert self.alarms.get(alarm.id, "pending") == "pending"
                self.alarms[alarm.id] = "open"
                self._log_transition(at, "opened", alarm.rule, alarm.owner)
            case Resolve(alarm, at):
                assert self.alarms[alarm.id] == "open"
                self.alarms[alarm.id] = "resolved"
                self._log_transition(at, "resolved", alarm.rule, alarm.owner)

    def _log_transition(self, at: datetime, transition: str, rule: str, owner: str) -> None:
        assert at <= self.now
        of = "" if owner == PLANT else f" of {owner}"
        self.log.append(f"{format_duration(at - T0)} {transition} {rule}{of}")
