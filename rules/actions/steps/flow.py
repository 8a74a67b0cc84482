"""Steps `branch` and `parallel`.

A `branch` evaluates its condition and chooses its `then` or its `else`. A `parallel` does nothing
here: `rules.runbook` starts its branches when it completes.

Pure: no I/O.
"""

from __future__ import annotations

from functools import lru_cache

from rules.actions.steps.due_step import DueStep
from rules.language.cel import Condition, compile_branch_condition
from rules.language.cel.steps import branch_activation
from rules.runbook import Completed, Outcome


def perform_branch(step: DueStep) -> Outcome:
    document = step.document.branch
    assert document is not None
    activation = branch_activation(step.facts.event, step.facts.alarm, step.run.answers)
    holds = _condition(document.when, step.run.name).matches(activation)
    return Completed({"holds": holds}, branch=0 if holds else 1)


@lru_cache(maxsize=1_024)
def _condition(when: str, action: str) -> Condition:
    return compile_branch_condition(when, rule=action)


def perform_parallel(step: DueStep) -> Outcome:
    return Completed()
