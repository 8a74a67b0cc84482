"""Step `log`: write one line to the worker's log."""

from __future__ import annotations

import structlog

from rules.actions.steps.due_step import MAX_TEXT_LENGTH, DueStep
from rules.language.templates import fill_text
from rules.runbook import Completed, Outcome

_log = structlog.get_logger()


def perform_log(step: DueStep) -> Outcome:
    log = step.document.log
    assert log is not None
    message = fill_text(log.message, step.data)
    _log.info("action log", action=step.run.name, message=message)
    return Completed({"message": message[:MAX_TEXT_LENGTH]})
