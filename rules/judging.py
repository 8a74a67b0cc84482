"""Which actions an event starts, by the action_rules that hold together.

Guarantee: pure, and the same answer whoever asks and however late. An action_rule that is switched off starts
nothing, nor does one whose action does not hold. On failure: a condition that a newer engine refuses is set
aside, and said once: the other rules still hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from rules.current import RuleSet
from rules.expressions import Condition, RuleIndex, compile_event_condition
from schemas.documents import ActionDocument, ActionRuleDocument
from tocsin.core.errors import InvalidInput

_log = structlog.get_logger()


@dataclass(frozen=True)
class Match:
    """A rule that matched an event: the action to start, and its document."""

    rule: str
    action: str
    document: dict[str, Any]


class Judge:
    """One page of the rule book: `RuleBook(Judge, *Judge.KINDS)`."""

    KINDS = (ActionRuleDocument, ActionDocument)

    def __init__(self, rules: RuleSet, before: Judge | None = None) -> None:
        self._rules = {name: rule for name, rule in rules.of(ActionRuleDocument).items() if rule.enabled}
        self._actions = {
            name: action.model_dump(mode="json", by_alias=True)
            for name, action in rules.of(ActionDocument).items()
        }
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
        self._index = RuleIndex(usable)

    def judge(self, facts: Mapping[str, Any]) -> list[Match]:
        """The actions to start for an event: those of matching rules, and the schedule's own."""
        matches = [
            self._match(name, self._rules[name].action)
            for name in self._index.matching(facts)
            if self._rules[name].action in self._actions
        ]
        own = facts["action"] if facts["origin"] == "scheduled" else ""
        if own and own in self._actions:
            # No rule can have this name: it is not a safe token.
            matches.append(self._match(f"schedule:{facts['schedule']}", own))
        elif own:
            _log.error("unknown action", schedule=facts["schedule"], action=own, seq=facts["seq"])
        return matches

    def _match(self, rule: str, action: str) -> Match:
        return Match(rule, action, self._actions[action])


def _compiled(rule: str, when: str) -> Condition | None:
    try:
        return compile_event_condition(when, rule=rule)
    except InvalidInput as error:
        _log.error("rule cannot be used", rule=rule, when=when, error=error)
        return None
