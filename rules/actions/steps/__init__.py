"""What each kind of step does in the world.

Guarantee: a performer takes a `Task` and gives an `Outcome`; it commits nothing. An error that another attempt may mend
is `Failed`, one that would come again is `Failed(permanent=True)` or raised as `InvalidInput`. What is wrong with our
own servers (`Unreachable`, NATS away) is raised: the step comes back by itself, and no attempt is counted.

To add a kind: a model in `schemas/documents/runbook`, a function here, a line in `PERFORMERS`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from rules.actions.steps.deliver import perform_channel, perform_delivery
from rules.actions.steps.digest import perform_digest
from rules.actions.steps.emit import perform_emit
from rules.actions.steps.flow import perform_branch, perform_parallel, perform_wait
from rules.actions.steps.log import perform_log
from rules.actions.steps.probe import perform_probe
from rules.actions.steps.publish import perform_dispatch, perform_publish
from rules.actions.steps.record import perform_record
from rules.actions.steps.task import Task
from rules.runbook import Outcome

PERFORMERS: Mapping[str, Callable[[Task], Awaitable[Outcome]]] = {
    "log": perform_log,
    "publish": perform_publish,
    "dispatch": perform_dispatch,
    "emit": perform_emit,
    "record": perform_record,
    "probe": perform_probe,
    "digest": perform_digest,
    "channel": perform_channel,
    "webhook": perform_delivery,
    "slack": perform_delivery,
    "email": perform_delivery,
    "apprise": perform_delivery,
    "wait": perform_wait,
    "branch": perform_branch,
    "parallel": perform_parallel,
}
