"""The retry policy of a schedule applies to the runs of its own action."""

from __future__ import annotations

from datetime import timedelta

from rules.runbook.override_retry import override_retry
from tests.rules.instance import START, Instance
from tests.sql import all_rows
from tocsin.client import schedule_once

ACTION = """
action:
  name: call
  steps: [{name: deliver, dispatch: {subject: received.nowhere, within: 1s}, retry: {attempts: 5}}]
"""
RULES = (
    "schedule: {name: due, every: 1h, action: call, retry: {attempts: 2, initial_interval: 1m, jitter: 0}}\n---\n"
    + ACTION
    + "---\naction_rule: {name: also, on: event, when: 'schedule == \"due\"', action: call}\n"
)


async def attempts(instance: Instance) -> dict[str, int]:
    rows = await all_rows(
        instance.connection,
        "select a.action_rule as rule, max(s.attempt) as attempts from tocsin.action a"
        " join tocsin.action_step s on s.action_id = a.id group by a.action_rule",
    )
    return {row["rule"]: row["attempts"] for row in rows}


async def test_a_schedule_overrides_the_retry_of_its_action(instance: Instance) -> None:
    await instance.rules(RULES)
    await instance.pass_time("1h50m")
    assert await attempts(instance) == {"schedule:due": 2, "also": 5}


async def test_a_service_gives_its_one_shot_a_retry(instance: Instance) -> None:
    await instance.rules(ACTION)
    at = START + timedelta(minutes=1)
    await schedule_once(
        instance.connection, owner="svc", name="once", at=at, action="call", retry={"attempts": 1}
    )
    await instance.pass_time("10m")
    assert await attempts(instance) == {"schedule:once": 1}
    (row,) = await all_rows(instance.connection, "select status from tocsin.schedule where name = 'once'")
    assert row["status"] == "failed"


def test_every_response_of_a_runbook_gets_the_policy() -> None:
    document = {
        "name": "a",
        "steps": [
            {"log": {}, "retry": {"attempts": 9}},
            {"wait": {"for": "1m"}},
            {"branch": {"when": "true", "then": [{"log": {}}], "else": []}},
            {"parallel": [[{"log": {}}], [{"log": {}}]]},
        ],
        "finally": [{"log": {}}],
    }
    retry = {"attempts": 2}
    step = {"log": {}, "retry": retry}
    assert override_retry(document, retry) == {
        "name": "a",
        "steps": [
            step,
            {"wait": {"for": "1m"}},
            {"branch": {"when": "true", "then": [step], "else": []}},
            {"parallel": [[step], [step]]},
        ],
        "finally": [step],
    }
