"""Perform: a step that is due is done, and its outcome is committed together with what follows from it.

Guarantee (I7): an outcome is unique per (action, step, attempt): a worker that comes second changes nothing. What a
step does in the world is done at least once, always with the same idempotency key. On failure of our own servers
nothing is committed and the step comes back. Whatever else goes wrong is an outcome: a step that fails is tried again
as its document says, and ends as `failed` or `timed_out`.
"""

from __future__ import annotations

import asyncio
import time

import psycopg
import structlog
from nats.errors import Error as NatsError
from pydantic import ValidationError

from rules.actions.commit import give_up, settle
from rules.actions.steps import PERFORMERS
from rules.actions.steps.publish import outcome_of_report
from rules.actions.steps.task import LONGEST_KEPT, Task, World
from rules.actions.store import Action, read_action, read_situation
from rules.metrics import STEP, STEPS
from rules.runbook import Completed, Failed, Outcome, Paused, TimedOut
from schemas.refusals import refusal
from schemas.values.duration import format_duration
from schemas.wire.step import ActionStep
from tocsin.core.errors import InvalidInput, Unreachable

_log = structlog.get_logger()
# Our own servers are away: no fault of the step.
_OURS = (Unreachable, NatsError, psycopg.OperationalError, psycopg.InterfaceError)
_OUTCOMES = {Completed: "completed", Failed: "failed", TimedOut: "timed_out", Paused: "paused"}


async def perform(world: World, body: bytes) -> bool:
    """Do the step of a message if it is due and still ours to do; true if this call settled it."""
    try:
        due = ActionStep.model_validate_json(body)
    except ValidationError as error:
        _log.error("unreadable message in the stream", error=error)
        return False
    if due.state != "due":
        return False
    async with world.sessions() as connection:
        action = await read_action(connection, due.actionid)
        if action is None or not action.is_due(due.step, due.attempt):
            return False
        try:
            node = action.node(due.step)
        except (ValidationError, InvalidInput) as error:
            reason = refusal(error) if isinstance(error, ValidationError) else str(error)
            return await give_up(connection, action, due.step, reason[:LONGEST_KEPT])
        try:
            situation = await read_situation(connection, action)
        except InvalidInput as error:
            return await settle(connection, action, due.step, Failed(str(error), permanent=True))
    began_s = time.monotonic()
    outcome = await _outcome(Task(action, node, situation, world))
    STEP.observe(time.monotonic() - began_s, node.kind)
    return await _conclude(world, action, due, outcome)


async def _conclude(world: World, action: Action, due: ActionStep, outcome: Outcome) -> bool:
    """Commit; again as long as other steps of the action move it on, until the step is no longer ours."""
    while True:
        async with world.sessions() as connection:
            if await settle(connection, action, due.step, outcome):
                STEPS.add(1, action.node(due.step).kind, _OUTCOMES[type(outcome)])
                return True
            moved = await read_action(connection, due.actionid)
        if moved is None or not moved.is_due(due.step, due.attempt):
            _log.info("step was settled by somebody else", action=due.action, step=due.step)
            return False
        action = moved
        if action.node(due.step).kind == "dispatch" and "report" in action.entry(due.step):
            # The consumer was quicker than we.
            outcome = outcome_of_report(action.entry(due.step)["report"])


async def _outcome(task: Task) -> Outcome:
    limit = task.node.step.attempt_timeout
    try:
        async with asyncio.timeout(limit.total_seconds()) as scope:
            return await PERFORMERS[task.node.kind](task)
    except InvalidInput as error:
        return Failed(str(error)[:LONGEST_KEPT], permanent=True)
    except TimeoutError:
        if not scope.expired():
            raise
        return TimedOut(f"it did not end within {format_duration(limit)}")
    except _OURS:
        raise
    except Exception as error:
        # Whatever it is, it must not come back for ever.
        _log.exception("step failed unexpectedly", action=task.action.name, step=task.node.number)
        return Failed(f"{type(error).__name__}: {error}"[:LONGEST_KEPT])
