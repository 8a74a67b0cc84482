"""Delivers to Slack incoming webhooks, with Block Kit.

Guarantee: texts are cut to the Slack limits, and `&`, `<` and `>` are escaped in the blocks that
this module makes, so that no value becomes a link or a mention.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rules.delivery.egress import Egress
from rules.delivery.http import HttpRequest, request
from rules.delivery.message import Message
from rules.delivery.outcome import DeliveryOutcome, outcome_of_answer
from rules.delivery.secrets import Secrets
from rules.delivery.webhook import json_body
from schemas.documents.targets import SlackTarget

_MAX_HEADER_LENGTH = 150
_MAX_TEXT_LENGTH = 3_000
_MAX_FIELD_LENGTH = 2_000
MAX_FIELDS = 10


async def send_slack(
    egress: Egress, target: SlackTarget, message: Message, secrets: Secrets, *, key: str, now: datetime
) -> DeliveryOutcome:
    blocks = (
        message.blocks
        if message.blocks is not None
        else [header(message.subject_line), section(message.text)]
    )
    # Notifications and screen readers use `text`.
    body = json_body({"text": escape(message.subject_line), "blocks": blocks})
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    url = await secrets.reveal_url(target.url)
    answer = await request(egress, HttpRequest("POST", url, headers, body, target.timeout.total_seconds()))
    return outcome_of_answer(answer.where, answer.status, answer.headers, answer.excerpt, now)


def header(text: str) -> dict[str, Any]:
    return {
        "type": "header",
        "text": {"type": "plain_text", "text": _cut(text, _MAX_HEADER_LENGTH), "emoji": True},
    }


def section(text: str) -> dict[str, Any]:
    return {
        "type": "section",
        "text": {"type": "mrkdwn", "text": _cut(escape(text or " "), _MAX_TEXT_LENGTH)},
    }


def fields(pairs: dict[str, str]) -> dict[str, Any]:
    """A section of titles and values; Slack accepts ten."""
    return {
        "type": "section",
        "fields": [
            {"type": "mrkdwn", "text": _cut(f"*{escape(title)}*\n{escape(value)}", _MAX_FIELD_LENGTH)}
            for title, value in list(pairs.items())[:MAX_FIELDS]
        ],
    }


def link_line(urls: Mapping[str, str]) -> dict[str, Any]:
    """Links by their titles. The urls were checked when their document was loaded."""
    links = "  |  ".join(f"<{escape(url)}|{escape(title)}>" for title, url in urls.items())
    return {"type": "section", "text": {"type": "mrkdwn", "text": links}}


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 3]}..."
