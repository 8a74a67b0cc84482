"""`webhook`, `slack`, `email`, `apprise` and `channel`: a message to somebody outside.

Guarantee: the message goes through the one guard, with the step's idempotency key. What the other side refuses for
good is a permanent failure; what may succeed later is tried again, and not before the other side wants to be asked.
"""

from __future__ import annotations

from pydantic import ValidationError

from rules.delivery.deliver import deliver
from rules.delivery.message import Message
from rules.runbook import Completed, Failed, Outcome
from rules.steps.messages import message_of
from rules.steps.task import LONGEST_KEPT, Task
from schemas.channel_document import ChannelDocument
from schemas.runbook.deliveries import ChannelStep
from schemas.targets import Target
from tocsin.core.db import statement
from tocsin.core.errors import InvalidInput


async def perform_delivery(task: Task) -> Outcome:
    """`webhook`, `slack`, `email` or `apprise`: the step is its own target."""
    step = getattr(task.node.step, task.node.kind)
    return await send(task, step, message_of(task, step))


async def perform_channel(task: Task) -> Outcome:
    step = task.node.step.channel
    assert isinstance(step, ChannelStep)
    return await send_through(task, step.name, message_of(task, step))


async def send_through(task: Task, name: str, message: Message) -> Outcome:
    channel = await _channel(task, name)
    if not channel.enabled:
        return Completed({"channel": name, "sent": False, "reason": "the channel is disabled"})
    outcome = await send(task, channel.target, message)
    if isinstance(outcome, Completed):
        return Completed({"channel": name, **outcome.answer})
    return outcome


async def send(task: Task, target: Target, message: Message) -> Outcome:
    ended = await deliver(task.world.egress, target, message, key=task.key, now=task.action.at)
    text = ended.text[:LONGEST_KEPT]
    if ended.state == "delivered":
        return Completed({**ended.result, "text": text, "sent": True})
    return Failed(
        text, permanent=ended.state == "permanent", answer=ended.result, retry_after=ended.retry_after
    )


async def _channel(task: Task, name: str) -> ChannelDocument:
    async with task.world.sessions() as connection:
        row = await (
            await connection.execute(statement("rules.actions/read_channel"), {"name": name})
        ).fetchone()
    if row is None:
        raise InvalidInput(f"there is no channel {name!r}: apply one, and try the action again")
    try:
        return ChannelDocument.model_validate(row[0])
    except ValidationError as error:
        reason = error.errors(include_url=False, include_input=False)[0]["msg"].lower()
        raise InvalidInput(
            f"the channel {name!r} cannot be read by this version of tocsin: {reason}"
        ) from None
