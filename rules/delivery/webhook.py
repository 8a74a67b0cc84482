"""Delivers JSON over HTTP, signed as Standard Webhooks.

Guarantee: the headers `webhook-id` and `Idempotency-Key` have the idempotency key, the same for
every attempt. `webhook-signature` has one signature for each secret, so that a receiver that knows
one of them accepts the message while the secret is replaced. The body that is sent is the body that
was signed.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rules.delivery.egress import Egress
from rules.delivery.http import HttpRequest, request
from rules.delivery.message import Message
from rules.delivery.outcome import DeliveryOutcome, outcome_of_answer
from rules.delivery.secrets import Secrets, host_of
from schemas.documents.targets import WebhookTarget
from schemas.values.json_shape import check_json_shape
from schemas.values.secret import SecretRef
from tocsin.core.errors import InvalidInput

_PREFIX = "whsec_"
_MIN_KEY_BYTES, _MAX_KEY_BYTES = 24, 64


async def send_webhook(
    egress: Egress, target: WebhookTarget, message: Message, secrets: Secrets, *, key: str, now: datetime
) -> DeliveryOutcome:
    payload = message.payload if message.payload is not None else plain_payload(message)
    body = json_body(payload)
    timestamp = int(now.timestamp())
    url = await secrets.reveal_url(target.url)
    host = host_of(url)
    headers = {name: await secrets.reveal_to(host, value) for name, value in target.headers.items()}
    headers |= {
        "Content-Type": "application/json",
        "Idempotency-Key": key,
        "webhook-id": key,
        "webhook-timestamp": str(timestamp),
    }
    keys = [await _signing_key(secrets, ref) for ref in target.secrets]
    if keys:
        headers["webhook-signature"] = signature(keys, key, timestamp, body)
    answer = await request(
        egress,
        HttpRequest(target.method, url, headers, body, target.timeout.total_seconds()),
    )
    return outcome_of_answer(answer.where, answer.status, answer.headers, answer.excerpt, now)


def plain_payload(message: Message) -> dict[str, Any]:
    return {"subject": message.subject_line, "text": message.text}


def json_body(payload: dict[str, Any]) -> bytes:
    check_json_shape(payload)
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()


def signature(keys: Sequence[bytes], message_id: str, timestamp: int, body: bytes) -> str:
    signed = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(
        f"v1,{base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()}" for key in keys
    )


async def _signing_key(secrets: Secrets, ref: SecretRef) -> bytes:
    text = await secrets.reveal_key(ref)
    try:
        padding = "=" * (-len(text.removeprefix(_PREFIX)) % 4)  # some secrets leave it out
        key = base64.b64decode(text.removeprefix(_PREFIX) + padding, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not text.startswith(_PREFIX) or not _MIN_KEY_BYTES <= len(key) <= _MAX_KEY_BYTES:
        raise InvalidInput(
            f"the secret {ref} cannot sign",
            remedy=f"it must be {_PREFIX} and the base64 of {_MIN_KEY_BYTES} to {_MAX_KEY_BYTES} bytes",
        )
    return key
