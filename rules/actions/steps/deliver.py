"""Steps `webhook`, `slack`, `email`, `apprise` and `channel`: send a message to an outside service.

Guarantee: the message passes the egress guard and carries the step's idempotency key. A rejection
that a retry would meet again (HTTP status 4xx other than 408, 425 or 429, SMTP answer 5xx) is a
permanent failure. Any other failure is retried, not before the time in `Retry-After` if the service
sent one.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from rules.actions.channels import read_channel
from rules.actions.steps.context import StepContext
from rules.actions.steps.due_step import MAX_TEXT_LENGTH, DueStep
from rules.actions.steps.limited_delivery import deliver_limited
from rules.actions.steps.messages import message_of
from rules.delivery.alarm_facts import MessageView
from rules.delivery.message import Message
from rules.runbook import Completed, Failed, Outcome
from schemas.documents.channel import ChannelDocument
from schemas.documents.runbook.deliveries import ChannelStep
from schemas.documents.targets import Target
from tocsin.core.settings import Settings

_log = structlog.get_logger()


async def perform_delivery(step: DueStep, context: StepContext) -> Outcome:
    """`webhook`, `slack`, `email` or `apprise`: the step has its own target."""
    # The key of the step is its kind.
    target = getattr(step.document, step.kind)
    view = MessageView(console_url=context.settings.console_url)
    return await _send(step, context, target, message_of(step, target, view))


async def perform_channel(step: DueStep, context: StepContext) -> Outcome:
    document = step.document.channel
    assert isinstance(document, ChannelStep)
    return await send_through_channel(
        step, context, document.name, lambda view: message_of(step, document, view)
    )


async def send_through_channel(
    step: DueStep, context: StepContext, name: str, build: Callable[[MessageView], Message]
) -> Outcome:
    """Send a message through a channel as it is configured now. Steps `channel` and `digest` use it."""
    async with context.open_session() as connection:
        channel = await read_channel(connection, name)
    not_sent = outcome_if_disabled(channel)
    if not_sent is not None:
        return not_sent
    message = build(view_of(channel, context.settings))
    outcome = await _send(step, context, channel.target, message, name)
    if isinstance(outcome, Completed):
        return Completed({"channel": name, **outcome.answer})
    return outcome


def view_of(channel: ChannelDocument, settings: Settings) -> MessageView:
    return MessageView(tz=channel.tz, console_url=settings.console_url)


def outcome_if_disabled(channel: ChannelDocument) -> Completed | None:
    """The outcome of a step through a disabled channel. Pure: no I/O."""
    if channel.enabled:
        return None
    return Completed({"channel": channel.name, "sent": False, "reason": "the channel is disabled"})


async def _send(
    step: DueStep, context: StepContext, target: Target, message: Message, channel: str = ""
) -> Outcome:
    delivery = await deliver_limited(
        context,
        target,
        message,
        key=step.idempotency_key,
        now=step.run.read_at,
        channel=channel,
        may_postpone=not step.is_last_attempt,
    )
    text = delivery.text[:MAX_TEXT_LENGTH]
    problem = {"template_problem": message.problem[:MAX_TEXT_LENGTH]} if message.problem else {}
    if problem:
        _log.warning("default text sent", action=step.run.name, id=step.run.id, error=message.problem)
    if delivery.state == "delivered":
        return Completed({**delivery.result, "text": text, "sent": True, **problem})
    is_permanent = delivery.state == "permanent"
    return Failed(text, permanent=is_permanent, answer=delivery.result, retry_after=delivery.retry_after)
