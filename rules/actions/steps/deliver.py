"""`webhook`, `slack`, `email`, `apprise` and `channel`: a message to somebody outside.

Guarantee: the message goes through the one guard, with the step's idempotency key. What the other side refuses for
good is a permanent failure; what may succeed later is tried again, and not before the other side wants to be asked.
"""

from __future__ import annotations

from rules.actions.channels import read_channel
from rules.actions.steps.messages import message_of
from rules.actions.steps.task import LONGEST_KEPT, Task
from rules.delivery.deliver import deliver
from rules.delivery.message import Message
from rules.runbook import Completed, Failed, Outcome
from schemas.documents.runbook.deliveries import ChannelStep
from schemas.documents.targets import Target


async def perform_delivery(task: Task) -> Outcome:
    """`webhook`, `slack`, `email` or `apprise`: the step is its own target."""
    step = getattr(task.node.step, task.node.kind)
    return await send(task, step, message_of(task, step))


async def perform_channel(task: Task) -> Outcome:
    step = task.node.step.channel
    assert isinstance(step, ChannelStep)
    return await send_through(task, step.name, message_of(task, step))


async def send_through(task: Task, name: str, message: Message) -> Outcome:
    async with task.world.sessions() as connection:
        channel = await read_channel(connection, name)
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
