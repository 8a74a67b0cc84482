"""`log`: one line in the worker's log."""

from __future__ import annotations

import structlog

from rules.actions.steps.task import LONGEST_KEPT, Task
from rules.language.templates import fill_text
from rules.runbook import Completed, Outcome

_log = structlog.get_logger()


async def perform_log(task: Task) -> Outcome:
    step = task.node.step.log
    assert step is not None
    message = fill_text(step.message, task.data)
    _log.info("action log", action=task.action.name, message=message)
    return Completed({"message": message[:LONGEST_KEPT]})
