"""Retries dead runs for an operator.

Guarantee: the failed steps are tried again with a new round of attempts and the same idempotency
key. Completed steps are not repeated. The retry is recorded in the audit. A run whose event is not in
the log cannot be retried.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from psycopg.types.json import Jsonb
from pydantic import ValidationError

from rules.actions.audit import audit_run
from rules.actions.commit import new_step, set_schedule_status
from rules.actions.run import ActionRun
from rules.actions.store import read_facts, read_run
from rules.runbook import Advance, StepRecord, retry_dead_steps
from rules.runbook.states import DEAD
from schemas.error_text import error_text
from tocsin.core.audit import Actor
from tocsin.core.db import Connection, retrying, statement
from tocsin.core.errors import InvalidInput, Refused
from tocsin.core.record_log import append_records
from tocsin.core.records import NewRecords


async def retry_run(connection: Connection, id: UUID, actor: Actor) -> list[int]:
    """Start a dead run again. Returns the numbers of the steps that are due.

    `Refused` if the run is not dead.
    """
    run = await read_run(connection, id)
    if run is None:
        raise Refused(
            f"there is no action {id}", remedy="`tocsin actions --state dead` lists those that can be retried"
        )
    if run.state not in DEAD:
        raise Refused(f"action {id} is {run.state}: only one that failed or timed out can be tried again")
    if "notify" not in run.document:
        await _refuse_without_event(connection, run)
    advance = _retry_dead_steps(run)
    steps = [
        # Marks the step in the history as retried by an operator.
        new_step(run, replace(effect, result={"retried": True}))
        for effect in advance.effects
        if isinstance(effect, StepRecord)
    ]
    row = {"id": id, "version": run.version, "active": Jsonb(advance.active)}

    async def once() -> None:
        async with connection.transaction():
            # A one-shot schedule shows that its action failed: it is `fired` again. First, because
            # schedules are locked before actions.
            await set_schedule_status(connection, run, "fired")
            if (await connection.execute(statement("rules.actions/retry_action"), row)).rowcount == 0:
                raise Refused(
                    f"action {id} was changed by another process at this moment", remedy="look at it again"
                )
            await audit_run(connection, actor, "retry", id, run.name, run.owner)
            await append_records(connection, NewRecords(steps=steps))

    await retrying(once)
    return [step.step for step in steps]


async def _refuse_without_event(connection: Connection, run: ActionRun) -> None:
    """A run without its event would fail at its first step again."""
    try:
        await read_facts(connection, run)
    except InvalidInput as error:
        raise Refused(
            f"action {run.id} cannot run again: {error}",
            remedy="send or fire the event again, which starts a new run",
        ) from None


def _retry_dead_steps(run: ActionRun) -> Advance:
    """`Refused` if the stored document cannot be read."""
    try:
        return retry_dead_steps(run.program, run.active)
    except (ValidationError, InvalidInput) as error:
        reason = error_text(error) if isinstance(error, ValidationError) else str(error)
        raise Refused(
            f"action {run.id} has a document that this version of tocsin cannot read: {reason}"
        ) from None
