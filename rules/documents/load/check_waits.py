"""Checks that no step waits for the event that cancels its run.

Guarantee: an action_rule whose `ends_with` has a transition, and whose action waits for that
transition of the same alarm, is rejected: the event would cancel the run before the step sees it.
A wait for the transition of another alarm is accepted.

How: for each event_rule, and for one with an unknown name, the conditions are evaluated with the
events of an alarm of that rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from rules.documents.load.problems import RuleProblem
from rules.documents.load.source import SourceDocument
from rules.language.cel import Condition, ExpressionInvalid, compile_event_condition, compile_wait_condition
from rules.language.cel.environment import event_activation, event_environment
from rules.language.cel.steps import wait_activation
from schemas.documents import ActionDocument, ActionRuleDocument, EventRuleDocument
from schemas.documents.runbook import walk
from schemas.values.severities import severities
from schemas.wire.alarm_events import event_type
from tocsin.core.errors import InvalidInput

_ID = "00000000-0000-0000-0000-000000000000"
Facts = Mapping[str, Any]


def wait_problems(documents: Sequence[SourceDocument], applied: Sequence[BaseModel]) -> Iterator[RuleProblem]:
    models = [*applied, *(document.model for document in documents)]
    actions = {model.name: model for model in models if isinstance(model, ActionDocument)}
    event_rules = [model.name for model in models if isinstance(model, EventRuleDocument)]
    for document in documents:
        rule = document.model
        if isinstance(rule, ActionRuleDocument) and rule.action in actions:
            yield from _problems(document, rule, actions[rule.action], [*event_rules, "any-rule"])


def _problems(
    document: SourceDocument, rule: ActionRuleDocument, action: ActionDocument, event_rules: Sequence[str]
) -> Iterable[RuleProblem]:
    conditions = [
        step.wait.until_event
        for _, step in walk(action.steps or ())
        if step.wait is not None and step.wait.until_event is not None
    ]
    if not conditions:
        return
    try:
        when = compile_event_condition(rule.condition, rule=rule.name)
        waits = [(text, compile_wait_condition(text)) for text in conditions]
    except ExpressionInvalid:
        # Reported by the checks of these conditions.
        return
    for transition in rule.ending_transitions:
        for text, wait in waits:
            if any(_is_cancelled(when, rule, wait, name, event_type(transition)) for name in event_rules):
                message = (
                    f"{document.title}: action '{action.name}' waits for '{text}', but that event cancels the run: "
                    f"write 'ends_with: {_others(rule, transition)}', or move the steps after the wait to 'finally'"
                )
                yield document.problem(document.body.at(("action",)), message)


def _others(rule: ActionRuleDocument, transition: str) -> str:
    others = [other for other in rule.ending_transitions if other != transition]
    return f"[{', '.join(others)}]" if others else "never"


def _is_cancelled(
    when: Condition, rule: ActionRuleDocument, wait: Condition, event_rule: str, ending_type: str
) -> bool:
    types = [event_type(transition) for transition in rule.transitions] if rule.on == "alarm" else None
    for type in types or [event_type("opened")]:
        trigger = _event(type, event_rule, 1)
        try:
            if not _matches(when, trigger):
                continue
            activation = wait_activation(_event(ending_type, event_rule, 2), trigger)
            if type != ending_type and wait.evaluate(activation, is_error_expected=True) is True:
                return True
        except InvalidInput:
            continue
    return False


def _matches(when: Condition, event: Facts) -> bool:
    activation = event_activation(event_environment(), event)
    return when.evaluate(activation, is_error_expected=True) is True


def _event(type: str, rule: str, seq: int) -> Facts:
    return {
        **{"type": type, "rule": rule, "owner": "owner", "id": _ID, "correlation_id": _ID, "seq": seq},
        **{"origin": "derived", "severity": max(severities().values()), "payload": {}},
    }
