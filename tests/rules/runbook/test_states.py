"""States of runs: the literals of exported models and the table `action` list the same."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from rules.runbook.states import ACTIVE_STEP, ENDED, RUN_STATES, ending_reason, ends_with_alarm
from schemas.documents.rule_test import Expected
from schemas.wire.step import ActionStep
from tests.paths import ROOT


def test_rule_tests_expect_any_state_of_a_run() -> None:
    assert set(get_args(Expected.model_fields["state"].annotation)) == set(RUN_STATES)


def test_a_step_message_has_any_state_of_a_step() -> None:
    assert set(get_args(ActionStep.model_fields["state"].annotation)) == {*ACTIVE_STEP, *ENDED}


def test_the_schema_accepts_the_states_of_a_run() -> None:
    schema = (ROOT / "migrations" / "schema.sql").read_text(encoding="utf-8")
    (check,) = re.findall(r"constraint action_state_check .*", schema)
    assert set(re.findall(r"'(\w+)'", check)) == set(RUN_STATES)


@pytest.mark.parametrize(
    ("type", "reason"),
    [
        ("alarm-resolved", "the alarm resolved"),
        ("alarm-acknowledged", "the alarm was acknowledged"),
        ("alarm-snoozed", None),
        ("alarm-opened", None),
    ],
)
def test_an_alarm_ends_its_runs_when_it_resolves_or_is_acknowledged(type: str, reason: str | None) -> None:
    assert ending_reason({"type": type, "origin": "derived", "action": ""}) == reason


def test_an_event_that_only_has_the_type_of_a_transition_ends_nothing() -> None:
    for origin, action in (("external", ""), ("caused", "esc")):
        assert ending_reason({"type": "alarm-resolved", "origin": origin, "action": action}) is None


def test_a_notification_does_not_end_with_its_alarm() -> None:
    assert ends_with_alarm("page")
    assert not ends_with_alarm("notify:hot:ops")
