"""Steps `branch` and `parallel`: decide which steps come next. Pure."""

from __future__ import annotations

from functools import lru_cache

from rules.actions.steps.due_step import DueStep
from rules.language.cel import Condition, compile_branch_condition
from rules.language.cel.steps import branch_activation
from rules.runbook import Completed, Outcome


def perform_branch(step: DueStep) -> Outcome:
    branch = step.document.branch
    assert branch is not None
    activation = branch_activation(step.facts.event, step.facts.alarm, step.run.answers)
    holds = _condition(branch.when, step.run.name).matches(activation)
    return Completed({"holds": holds}, way=0 if holds else 1)


@lru_cache(maxsize=1_024)
def _condition(when: str, action: str) -> Condition:
    return compile_branch_condition(when, rule=action)


def perform_parallel(step: DueStep) -> Outcome:
    return Completed()
