"""The dead-letter list: actions that failed or timed out, and how a person sets one going again.

Guarantee: what failed is tried again from where it failed, with another round of attempts and the same idempotency
key; what was done before is not done again. The act is in the audit.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from psycopg.types.json import Jsonb
from pydantic import ValidationError

from rules.actions.cancel import audit
from rules.actions.commit import judge_schedule, new_step
from rules.actions.store import Action, read_action
from rules.runbook import Advance, Recorded, revive
from rules.runbook.advance import DEAD
from schemas.refusals import refusal
from tocsin.core.audit import Actor
from tocsin.core.db import Connection, retrying, statement
from tocsin.core.errors import InvalidInput, Refused
from tocsin.core.record_log import append_records
from tocsin.core.records import Records


async def retry_action(connection: Connection, id: UUID, actor: Actor) -> list[int]:
    """The steps that are tried again."""
    action = await read_action(connection, id)
    if action is None:
        raise Refused(
            f"there is no action {id}",
            remedy="`tocsin actions --state dead` lists those that can be tried again",
        )
    if action.state not in DEAD:
        raise Refused(f"action {id} is {action.state}: only one that failed or timed out can be tried again")
    after = _revived(action)
    steps = [
        new_step(action, replace(one, result={"retried": True}))
        for one in after.effects
        if isinstance(one, Recorded)
    ]
    row = {"id": id, "version": action.version, "active": Jsonb(after.active)}

    async def once() -> None:
        async with connection.transaction():
            await judge_schedule(connection, action, "fired")
            if (await connection.execute(statement("rules.actions/revive_action"), row)).rowcount == 0:
                raise Refused(
                    f"action {id} was changed by somebody else at this moment", remedy="look at it again"
                )
            await audit(connection, actor, "retry", steps[0])
            await append_records(connection, Records(steps=steps))

    await retrying(once)
    return [step.step for step in steps]


def _revived(action: Action) -> Advance:
    try:
        return revive(action.program, action.active)
    except (ValidationError, InvalidInput) as error:
        reason = refusal(error) if isinstance(error, ValidationError) else str(error)
        raise Refused(
            f"action {action.id} has a document that this version of tocsin cannot read: {reason}"
        ) from None
