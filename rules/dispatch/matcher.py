"""Which actions an event starts, by the action_rules that hold together.

Guarantee: pure, and the same answer whoever asks and however late. An action_rule that is switched off starts
nothing, nor does one whose action does not hold. A rule over alarms sees the edges it names and nothing else. On
failure: a condition that a newer engine refuses is set aside, and said once: the other rules still hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import structlog

from rules.dispatch.notifications import Notifier
from rules.documents.rule_book import RuleSet
from rules.language.cel import Condition, RuleIndex, compile_event_condition
from rules.runbook import compile_runbook
from schemas.documents import (
    ActionDocument,
    ActionRuleDocument,
    ChannelDocument,
    DatapointTypeDocument,
    EventRuleDocument,
)
from schemas.wire.alarm_events import event_type
from tocsin.core.errors import InvalidInput

_log = structlog.get_logger()


@dataclass(frozen=True)
class Match:
    """A rule that matched an event: the action to start, its document, and the rule that says how often."""

    rule: str
    action: str
    document: dict[str, Any]
    policy: ActionRuleDocument | None = None
    """None: whatever matches is started."""


class Judge:
    """The compiled form of a rule set in `RuleBook(Judge, *Judge.KINDS)`."""

    KINDS = (ActionRuleDocument, ActionDocument, EventRuleDocument, DatapointTypeDocument, ChannelDocument)

    def __init__(self, rules: RuleSet, before: Judge | None = None) -> None:
        self._rules = {name: rule for name, rule in rules.of(ActionRuleDocument).items() if rule.enabled}
        self._actions = {
            name: action.model_dump(mode="json", by_alias=True)
            for name, action in rules.of(ActionDocument).items()
        }
        self._runbooks = list(rules.of(ActionDocument).values())
        self._edges = {
            name: frozenset(map(event_type, rule.transitions))
            for name, rule in self._rules.items()
            if rule.on == "alarm"
        }
        self._notifier = Notifier(rules)
        compiled = before._conditions if before is not None else {}
        self._conditions: dict[tuple[str, str], Condition | None] = {
            (name, rule.condition): compiled[name, rule.condition]
            if (name, rule.condition) in compiled
            else _compiled(name, rule.condition)
            for name, rule in self._rules.items()
        }
        usable = {
            name: condition for (name, _), condition in self._conditions.items() if condition is not None
        }
        # A rule over alarms is asked about edges alone: most events are none.
        self._over_events = RuleIndex({name: one for name, one in usable.items() if name not in self._edges})
        self._over_alarms = RuleIndex({name: one for name, one in usable.items() if name in self._edges})

    def judge(self, facts: Mapping[str, Any]) -> list[Match]:
        """The actions to start for an event: those of matching rules, the schedule's own, and notifications."""
        names = self._over_events.matching(facts)
        if facts["type"].startswith("alarm-") and facts["origin"] != "external":
            names += [
                name for name in self._over_alarms.matching(facts) if facts["type"] in self._edges[name]
            ]
        matches = [
            Match(name, rule.action, self._actions[rule.action], rule)
            for name in sorted(names)
            if (rule := self._rules[name]).action in self._actions
        ]
        return matches + self._own(facts) + [Match(*one) for one in self._notifier.notices(facts)]

    @cached_property
    def awaits_events(self) -> bool:
        """Whether any event may matter to an action that is under way: some step waits for one."""
        waits = (node.step.wait for one in self._runbooks for node in compile_runbook(one).nodes)
        return any(wait is not None and wait.until_event is not None for wait in waits)

    def _own(self, facts: Mapping[str, Any]) -> list[Match]:
        """A schedule may carry an action of its own. No rule can have this name: it is not a safe token."""
        own = facts["action"] if facts["origin"] == "scheduled" else ""
        if own and own in self._actions:
            return [Match(f"schedule:{facts['schedule']}", own, self._actions[own])]
        if own:
            _log.error("unknown action", schedule=facts["schedule"], action=own, seq=facts["seq"])
        return []


def _compiled(rule: str, when: str) -> Condition | None:
    try:
        return compile_event_condition(when, rule=rule)
    except InvalidInput as error:
        _log.error("rule cannot be used", rule=rule, when=when, error=error)
        return None
