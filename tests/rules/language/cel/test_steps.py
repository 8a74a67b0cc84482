"""Conditions of steps: their variables, and the errors of the load."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from rules.language.cel import ExpressionInvalid, compile_branch_condition, compile_wait_condition
from rules.language.cel.steps import branch_activation, wait_activation
from schemas.fields import ALARM_FIELDS

SINCE = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
EVENT = {"type": "alarm-opened", "owner": "plant-7", "severity": 4, "payload": {"n": 1}}
ALARM = {
    "id": "x",
    "rule": "hot",
    "owner": "plant-7",
    "state": "open",
    "message": "too hot",
    "acknowledged_by": "",
    "severity": 4,
    "acknowledged": False,
    "snoozed": False,
    "since": SINCE,
    "payload": {"value": 71.5},
}


def holds(when: str, alarm: dict[str, Any] | None = None, answers: dict[str, Any] | None = None) -> bool:
    activation = branch_activation(EVENT, ALARM if alarm is None else alarm, answers or {})
    return compile_branch_condition(when).matches(activation)


@pytest.mark.parametrize(
    "when",
    [
        'alarm.state == "open" && !alarm.acknowledged && !alarm.snoozed',
        "alarm.severity >= high && severity >= high",
        "alarm.payload.value > 70.0",
        'alarm.since < timestamp("2026-03-03T00:00:00Z")',
        'type == "alarm-opened" && owner == alarm.owner && alarm.rule == "hot"',
        'alarm.message.contains("hot") && payload.n == 1',
    ],
)
def test_a_branch_sees_the_event_and_the_alarm(when: str) -> None:
    assert holds(when)


def test_every_field_of_an_alarm_can_be_named_and_has_a_value_without_one() -> None:
    for field in ALARM_FIELDS:
        compile_branch_condition(f"alarm.{field} == alarm.{field}")
    assert holds(
        'alarm.state == "" && alarm.severity == 0 && !alarm.acknowledged && size(alarm.payload) == 0', {}
    )


def test_a_branch_sees_the_answers_of_earlier_steps() -> None:
    answers = {"send": {"state": "completed", "status": 200}}
    assert holds('answers.send.status == 200 && answers["send"].state == "completed"', answers=answers)
    assert not holds("answers.other.status == 200", answers=answers)
    assert holds("!has(answers.other)", answers=answers)


def test_a_wait_sees_the_event_and_what_started_the_action() -> None:
    trigger = {"owner": "plant-7", "payload": {"order": 7}, "correlation_id": None}
    condition = compile_wait_condition(
        'owner == trigger.owner && trigger.payload.order == 7 && trigger.rule == ""'
    )
    assert condition.matches(wait_activation(EVENT, trigger))
    assert not condition.matches(wait_activation({**EVENT, "owner": "other"}, trigger))


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ('alarm.sate == "open"', "column 6: 'alarm' has no 'sate', did you mean 'state'?"),
        ('alrm.state == "open"', "column 5: unknown name 'alrm', did you mean 'alarm'?"),
        ('alarm == "open"', "column 1: 'alarm' has parts, write one of them, such as alarm.id"),
        ("alarm.state == 1", "column 13: '==' cannot be applied to string and int"),
        ("sverity >= high", "column 1: undeclared reference to 'sverity', did you mean 'severity'?"),
        ('answers.snd.state == "x"', "column 8: unknown answer 'snd', did you mean 'send'?"),
        ('answers.zzz.state == "x"', "column 8: unknown answer 'zzz', no step before this one has this name"),
        ('trigger.owner == "x"', "column 8: undeclared reference to 'trigger.owner'"),
    ],
)
def test_a_wrong_condition_is_refused_where_it_is_wrong(when: str, message: str) -> None:
    with pytest.raises(ExpressionInvalid) as refused:
        compile_branch_condition(when, known_answers=["send"])
    assert str(refused.value).startswith(message)
