"""The one way out: a target, a message, and an outcome.

Guarantee: `deliver` always returns an outcome, and nothing that it returns or logs holds a secret. What
cannot succeed (a refused address, a missing secret, a body that is too large) is permanent, what may succeed
later is retryable. A defect of ours is retryable too, and logged without its traceback, whose
variables would show what was revealed.
"""

from dataclasses import replace
from datetime import datetime

import structlog

from rules.delivery.apprise import send_apprise
from rules.delivery.egress import Egress
from rules.delivery.email import send_email
from rules.delivery.message import Message
from rules.delivery.outcome import Outcome
from rules.delivery.secrets import Secrets
from rules.delivery.slack import send_slack
from rules.delivery.webhook import send_webhook
from rules.metrics import DELIVERIES
from schemas.documents.targets import EmailTarget, SlackTarget, Target, WebhookTarget
from tocsin.core.errors import InvalidInput, Unreachable

_log = structlog.get_logger()
_KINDS = {WebhookTarget: "webhook", SlackTarget: "slack", EmailTarget: "email"}


async def deliver(
    egress: Egress,
    target: Target,
    message: Message,
    *,
    key: str,
    now: datetime,
    secrets: Secrets | None = None,
) -> Outcome:
    """`key` is the idempotency key, the same for every attempt; `now` dates and signs the message."""
    secrets = secrets or Secrets()
    try:
        outcome = await _send(egress, target, message, secrets, key, now)
    except Unreachable as error:
        outcome = Outcome("retryable", str(error))
    except InvalidInput as error:
        outcome = Outcome("permanent", str(error))
    except Exception as error:
        text = secrets.redact(f"{type(error).__name__}: {error}")
        _log.error("delivery failed unexpectedly", target=type(target).__name__, error=text)
        outcome = Outcome("retryable", f"it failed unexpectedly: {text}")
    DELIVERIES.add(1, _kind(target), outcome.state)
    return replace(outcome, text=secrets.redact(outcome.text), result=secrets.redact_json(outcome.result))


def _kind(target: Target) -> str:
    """A step may be its own target."""
    return next((name for model, name in _KINDS.items() if isinstance(target, model)), "apprise")


async def _send(
    egress: Egress, target: Target, message: Message, secrets: Secrets, key: str, now: datetime
) -> Outcome:
    if isinstance(target, WebhookTarget):
        return await send_webhook(egress, target, message, secrets, key=key, now=now)
    if isinstance(target, SlackTarget):
        return await send_slack(egress, target, message, secrets, key=key, now=now)
    if isinstance(target, EmailTarget):
        return await send_email(egress, target, message, secrets, key=key, now=now)
    return await send_apprise(egress, target, message, secrets)
