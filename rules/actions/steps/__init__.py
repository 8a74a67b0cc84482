"""Performs steps, one function per kind.

Guarantee: a function takes a `DueStep` and returns an `Outcome`; it commits nothing. An error that
another attempt may cure is `Failed`; one that would occur again is `Failed(permanent=True)` or
raised as `InvalidInput`. Failures of Tocsin's own servers (`Unreachable`, NATS disconnected) are
raised: the step is delivered again, and no attempt is counted.

Why two tables: local steps need no server, so rule tests and backtests call the same functions.
Remote steps take a `StepContext` as well.

To add a kind: a model in `schemas/documents/runbook`, a function here, an entry in `LOCAL` or
`REMOTE`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from rules.actions.steps.context import StepContext
from rules.actions.steps.deliver import perform_channel, perform_delivery
from rules.actions.steps.digest import perform_digest
from rules.actions.steps.due_step import DueStep
from rules.actions.steps.emit import perform_emit
from rules.actions.steps.flow import perform_branch, perform_parallel
from rules.actions.steps.log import perform_log
from rules.actions.steps.notify import perform_notify
from rules.actions.steps.probe import perform_probe
from rules.actions.steps.publish import perform_dispatch, perform_publish
from rules.actions.steps.record import perform_record
from rules.actions.steps.wait import perform_wait
from rules.runbook import Outcome

LOCAL: Mapping[str, Callable[[DueStep], Outcome]] = {
    "log": perform_log,
    "emit": perform_emit,
    "branch": perform_branch,
    "parallel": perform_parallel,
}
REMOTE: Mapping[str, Callable[[DueStep, StepContext], Awaitable[Outcome]]] = {
    "publish": perform_publish,
    "dispatch": perform_dispatch,
    "record": perform_record,
    "probe": perform_probe,
    "digest": perform_digest,
    "channel": perform_channel,
    "webhook": perform_delivery,
    "slack": perform_delivery,
    "email": perform_delivery,
    "apprise": perform_delivery,
    "wait": perform_wait,
    "notify": perform_notify,
}


async def perform(step: DueStep, context: StepContext) -> Outcome:
    if step.kind in LOCAL:
        return LOCAL[step.kind](step)
    return await REMOTE[step.kind](step, context)
