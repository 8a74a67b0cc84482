"""Slack's incoming webhooks, with Block Kit.

Guarantee: a message within Slack's limits is posted whatever it contains: `&`, `<` and `>` are escaped in what
this module makes of a text, so that no value becomes a link or a mention.
"""

from datetime import datetime
from typing import Any

from rules.delivery.egress import Egress
from rules.delivery.http import Request, request
from rules.delivery.message import Message
from rules.delivery.outcome import Outcome, outcome_of_answer
from rules.delivery.secrets import Secrets
from rules.delivery.webhook import json_body
from schemas.documents.targets import SlackTarget

_LONGEST_HEADER = 150
_LONGEST_TEXT = 3_000
_LONGEST_FIELD = 2_000
MAX_FIELDS = 10


async def send_slack(
    egress: Egress, target: SlackTarget, message: Message, secrets: Secrets, *, key: str, now: datetime
) -> Outcome:
    blocks = message.blocks if message.blocks is not None else [header(message.title), section(message.text)]
    # `text` is what notifications show, and what is read aloud.
    body = json_body({"text": escaped(message.title), "blocks": blocks})
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    answer = await request(
        egress, Request("POST", secrets.reveal(target.url), headers, body, target.timeout.total_seconds())
    )
    return outcome_of_answer(answer.where, answer.status, answer.headers, answer.excerpt, now)


def header(text: str) -> dict[str, Any]:
    return {
        "type": "header",
        "text": {"type": "plain_text", "text": _cut(text, _LONGEST_HEADER), "emoji": True},
    }


def section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": _cut(escaped(text or " "), _LONGEST_TEXT)}}


def fields(pairs: dict[str, str]) -> dict[str, Any]:
    """Up to ten titles with their values."""
    return {
        "type": "section",
        "fields": [
            {"type": "mrkdwn", "text": _cut(f"*{escaped(title)}*\n{escaped(value)}", _LONGEST_FIELD)}
            for title, value in list(pairs.items())[:MAX_FIELDS]
        ],
    }


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
