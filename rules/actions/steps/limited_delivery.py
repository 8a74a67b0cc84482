"""Delivers a message within the limits of its target (`rules.delivery.target_limits`).

Guarantee: `TargetBusy` is raised before anything is sent. A delivery that is postponed because its
target is down has the outcome `retryable`, with the time until the target is tried again.
"""

from __future__ import annotations

import time
from datetime import datetime

from rules.actions.steps.context import StepContext
from rules.delivery.deliver import deliver
from rules.delivery.message import Message
from rules.delivery.outcome import DeliveryOutcome
from rules.delivery.target_limits import UNANSWERED_LIMIT, target_key
from schemas.documents.targets import Target


async def deliver_limited(
    context: StepContext,
    target: Target,
    message: Message,
    *,
    key: str,
    now: datetime,
    channel: str = "",
    may_postpone: bool = True,
) -> DeliveryOutcome:
    """`may_postpone` is false for the last attempt of a step, which is always a real one."""
    limits, place = context.target_limits, target_key(target)
    rest = limits.rest(place, now.timestamp())
    if rest is not None and may_postpone:
        text = f"not sent: {place} did not answer {UNANSWERED_LIMIT} deliveries in succession"
        return DeliveryOutcome("retryable", text, retry_after=rest)
    limits.begin(place)
    began_s = time.monotonic()
    has_answered = False
    try:
        outcome = await deliver(
            context.egress, target, message, key=key, now=now, secrets=context.secrets(channel)
        )
        # Every answer of a server has a result, also one that rejects the message.
        has_answered = outcome.state != "retryable" or bool(outcome.result)
        return outcome
    finally:
        limits.end(place, now.timestamp(), answered=has_answered, took_s=time.monotonic() - began_s)
