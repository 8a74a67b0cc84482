"""The `Nats-Msg-Id` of the message that a step sends.

Guarantee: it is the same for every attempt, so that a stream stores the message once, and only this
instance can compute it. Streams drop a second message with a known id, whatever its content: an id that
a producer could compute would let it replace the message of a step by its own.
"""

from __future__ import annotations

from rules.actions.steps.context import StepContext
from rules.actions.steps.due_step import DueStep
from tocsin.core.db import fetch_value


async def message_id(step: DueStep, context: StepContext) -> str:
    parameters = {"action_id": step.run.id, "step": step.node.number}
    async with context.open_session() as connection:
        return str(await fetch_value(connection, "rules.actions/read_message_token", parameters))
