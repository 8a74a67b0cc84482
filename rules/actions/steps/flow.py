"""`wait`, `branch` and `parallel`: steps that do nothing in the world."""

from __future__ import annotations

from functools import lru_cache

from rules.actions.steps.task import Task
from rules.actions.store import read_event
from rules.language.cel import Condition, compile_branch_condition
from rules.language.cel.steps import branch_activation
from rules.runbook import Completed, Outcome
from rules.runbook.wait import outcome_of_wait
from tocsin.core.instant import instant_text

_SHOWN = ("id", "type", "owner", "schedule", "rule", "payload")


async def perform_wait(task: Task) -> Outcome:
    assert task.node.step.wait is not None
    outcome = outcome_of_wait(task.node.step.wait, task.entry, task.action.at)
    if "met" not in task.entry or not isinstance(outcome, Completed):
        return outcome
    async with task.world.sessions() as connection:
        event = await read_event(connection, task.entry["met"])
    shown = {} if event is None else {key: event[key] for key in _SHOWN}
    at = {} if event is None else {"ts": instant_text(event["ts"])}
    return Completed({**outcome.answer, "event": {**shown, **at}})


async def perform_branch(task: Task) -> Outcome:
    step = task.node.step.branch
    assert step is not None
    activation = branch_activation(task.situation.event, task.situation.alarm, task.action.answers)
    holds = _condition(step.when, task.action.name).matches(activation)
    return Completed({"holds": holds}, way=0 if holds else 1)


@lru_cache(maxsize=1_024)
def _condition(when: str, action: str) -> Condition:
    return compile_branch_condition(when, rule=action)


async def perform_parallel(task: Task) -> Outcome:
    return Completed()
