"""Delivers a message to a target of any kind.

Guarantee: `deliver` always returns an outcome, and neither the outcome nor the log holds a secret.
A delivery that cannot succeed (an address that the guard rejects, a missing secret, a body that is
too large) is permanent; any other failure is retryable. An unexpected exception is retryable as
well, and logged without its traceback, whose variables would show secrets.
"""

from dataclasses import replace
from datetime import datetime

import structlog

from rules.delivery.apprise import send_apprise
from rules.delivery.egress import Egress
from rules.delivery.email import send_email
from rules.delivery.message import Message
from rules.delivery.outcome import DeliveryOutcome
from rules.delivery.pagerduty import send_pagerduty
from rules.delivery.secret_store import SecretStore
from rules.delivery.secrets import Secrets
from rules.delivery.slack import send_slack
from rules.delivery.webhook import send_webhook
from rules.metrics import DELIVERIES
from schemas.documents.targets import EmailTarget, PagerDutyTarget, SlackTarget, Target, WebhookTarget
from tocsin.core.errors import InvalidInput, Unreachable

_log = structlog.get_logger()
_TARGET_KINDS = {
    WebhookTarget: "webhook",
    SlackTarget: "slack",
    EmailTarget: "email",
    PagerDutyTarget: "pagerduty",
}


async def deliver(
    egress: Egress,
    target: Target,
    message: Message,
    *,
    key: str,
    now: datetime,
    secrets: Secrets | None = None,
) -> DeliveryOutcome:
    """`key` is the idempotency key, the same for every attempt. `now` is the date of the message
    and part of its signature. Without `secrets` the delivery has none."""
    secrets = secrets or Secrets(SecretStore())
    try:
        outcome = await _send(egress, target, message, secrets, key, now)
    except Unreachable as error:
        outcome = DeliveryOutcome("retryable", str(error))
    except InvalidInput as error:
        outcome = DeliveryOutcome("permanent", str(error))
    except Exception as error:
        text = secrets.redact(f"{type(error).__name__}: {error}")
        _log.error("delivery failed unexpectedly", target=type(target).__name__, error=text)
        outcome = DeliveryOutcome("retryable", f"it failed unexpectedly: {text}")
    DELIVERIES.add(1, _kind(target), outcome.state)
    return replace(outcome, text=secrets.redact(outcome.text), result=secrets.redact_json(outcome.result))


def _kind(target: Target) -> str:
    """The name of a kind of target. Models of delivery steps are subclasses of targets."""
    return next((name for model, name in _TARGET_KINDS.items() if isinstance(target, model)), "apprise")


async def _send(
    egress: Egress, target: Target, message: Message, secrets: Secrets, key: str, now: datetime
) -> DeliveryOutcome:
    if isinstance(target, WebhookTarget):
        return await send_webhook(egress, target, message, secrets, key=key, now=now)
    if isinstance(target, SlackTarget):
        return await send_slack(egress, target, message, secrets, key=key, now=now)
    if isinstance(target, EmailTarget):
        return await send_email(egress, target, message, secrets, key=key, now=now)
    if isinstance(target, PagerDutyTarget):
        return await send_pagerduty(egress, target, message, secrets, key=key, now=now)
    return await send_apprise(egress, target, message, secrets)
