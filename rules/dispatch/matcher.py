"""The matcher: the actions that an event starts, by the action_rules of one rule set.

Guarantee: the same event and rule set give the same matches. A disabled action_rule starts nothing,
and neither does one whose action is not in the rule set. A rule over alarms sees the transitions it
names and no other event. On failure: a condition that a newer engine rejects is logged once and
skipped; the remaining rules stay active.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from uuid import UUID

import structlog

from rules.dispatch.admission import group_key, group_text
from rules.dispatch.notifications import BEGINNING, OPENED, NotificationRoute, Notifier
from rules.documents.rule_book import RuleSet
from rules.language.cel import Condition, RuleIndex, compile_event_condition
from rules.runbook import compile_runbook
from schemas.documents import (
    ActionDocument,
    ActionRuleDocument,
    ChannelDocument,
    DatapointTypeDocument,
    EventRuleDocument,
    HeartbeatDocument,
)
from schemas.documents.action_rule import ENDING_TRANSITIONS, EndingTransition
from schemas.documents.runbook.notify import NotifyStep
from schemas.values.rule_ref import RuleRef
from schemas.wire.alarm_events import event_type, is_transition
from timers.recurrence.active_times import time_filter
from tocsin.core.errors import InvalidInput

_log = structlog.get_logger()


@dataclass(frozen=True)
class Match:
    """A rule that matched an event, and the action to start."""

    rule: str
    """Text of a `RuleRef`."""
    action: str
    document: dict[str, Any]
    """The document of the action."""
    policy: ActionRuleDocument | None = None
    """The rule with its groups, overlap and rate limit; None if every match is started."""
    notify: NotifyStep | None = None
    """The step of a notification; None for other actions."""
    inactive: str | None = None
    """Why the rule starts nothing now (`active_in`)."""

    def group_of(self, facts: Mapping[str, Any], alarm_id: UUID | None) -> str:
        """The group of the run; of a notification about one alarm, the id of the alarm."""
        if self.policy is not None:
            return group_key(self.policy, facts)
        if self.notify is None:
            return ""
        if self.notify.group_wait is None:
            return str(alarm_id or "")
        return group_text(self.notify.group_by, facts)

    @classmethod
    def of(cls, notification: NotificationRoute) -> Match:
        return cls(notification.rule, notification.action, notification.document, notify=notification.step)

    @property
    def ends_with(self) -> tuple[EndingTransition, ...]:
        """The transitions of its alarm that cancel a run."""
        return ENDING_TRANSITIONS if self.policy is None else self.policy.ending_transitions


class ActionMatcher:
    """The compiled conditions of a rule set: `RuleBook(ActionMatcher, *ActionMatcher.DOCUMENT_TYPES)`."""

    DOCUMENT_TYPES = (
        ActionRuleDocument,
        ActionDocument,
        EventRuleDocument,
        DatapointTypeDocument,
        ChannelDocument,
        HeartbeatDocument,
    )

    def __init__(self, rules: RuleSet, before: ActionMatcher | None = None) -> None:
        self._rules = {name: rule for name, rule in rules.of(ActionRuleDocument).items() if rule.enabled}
        self._actions = {
            name: action.model_dump(mode="json", by_alias=True)
            for name, action in rules.of(ActionDocument).items()
        }
        self._runbooks = list(rules.of(ActionDocument).values())
        self._event_types = {
            name: BEGINNING if rule.notify else frozenset(map(event_type, rule.transitions))
            for name, rule in self._rules.items()
            if rule.on == "alarm"
        }
        """Event types of the transitions that each rule over alarms selects."""
        self.channels = rules.of(ChannelDocument)
        self._notifier = Notifier(rules)
        compiled = before._conditions if before is not None else {}
        self._conditions: dict[tuple[str, str], Condition | None] = {
            (name, rule.condition): compiled[name, rule.condition]
            if (name, rule.condition) in compiled
            else _compile(name, rule.condition)
            for name, rule in self._rules.items()
        }
        over_events: dict[str, Condition] = {}
        over_alarms: dict[str, Condition] = {}
        for (name, _), condition in self._conditions.items():
            if condition is not None:
                (over_alarms if name in self._event_types else over_events)[name] = condition
        # Apart, because most events are not transitions of alarms.
        self._over_events, self._over_alarms = RuleIndex(over_events), RuleIndex(over_alarms)

    def match(self, facts: Mapping[str, Any]) -> list[Match]:
        """The actions to start for an event: of matching rules, of the schedule itself, and
        notifications."""
        names = self._over_events.matching(facts)
        if is_transition(facts):
            names += [
                name for name in self._over_alarms.matching(facts) if facts["type"] in self._event_types[name]
            ]
        matches: list[Match] = []
        for name in sorted(names):
            rule = self._rules[name]
            inactive = None if rule.active_in is None else time_filter(rule.active_in).exclusion(facts["ts"])
            if rule.action is None:
                routes = map(Match.of, self._notifier.of_action_rule(name))
                # A later transition reaches the run that follows the alarm; without one nothing is left out.
                if inactive is None or facts["type"] == OPENED:
                    matches += (replace(route, inactive=inactive) for route in routes)
            elif rule.action in self._actions:
                action = self._actions[rule.action]
                matches.append(Match(name, rule.action, action, rule, inactive=inactive))
        notifications = [Match.of(notification) for notification in self._notifier.notifications(facts)]
        return matches + self._match_schedule(facts) + notifications

    @cached_property
    def awaits_events(self) -> bool:
        """Whether some step of some action waits for an event, so that every event may matter to a
        run."""
        waits = (node.step.wait for runbook in self._runbooks for node in compile_runbook(runbook).nodes)
        return any(wait is not None and wait.until_event is not None for wait in waits)

    def _match_schedule(self, facts: Mapping[str, Any]) -> list[Match]:
        """The action that a schedule names itself, without an action_rule."""
        action = facts["action"] if facts["origin"] == "scheduled" else ""
        if action and action in self._actions:
            return [Match(str(RuleRef("schedule", facts["schedule"])), action, self._actions[action])]
        if action:
            _log.error("unknown action", schedule=facts["schedule"], action=action, seq=facts["seq"])
        return []


def _compile(rule: str, when: str) -> Condition | None:
    try:
        return compile_event_condition(when, rule=rule)
    except InvalidInput as error:
        _log.error("rule cannot be used", rule=rule, when=when, error=error)
        return None
