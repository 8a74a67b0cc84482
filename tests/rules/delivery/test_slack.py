from datetime import UTC, datetime
from typing import Any

import pytest

from rules.delivery.deliver import deliver
from rules.delivery.egress import Egress
from rules.delivery.message import Message
from rules.delivery.outcome import DeliveryOutcome
from rules.delivery.slack import fields, header, section
from schemas.documents.targets import SlackTarget
from tests.rules.delivery.named_secrets import named_secrets
from tests.rules.delivery.receivers import Behaviour, Received, receiver, respond

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
PATH = "/services/T00000000/B00000000/s3cret-s3cret"


async def send(
    egress: Egress, message: Message, behave: Behaviour | None = None
) -> tuple[DeliveryOutcome, Received]:
    async with receiver(behave) as server:
        target = SlackTarget.model_validate({"url": {"secret": "slack"}})
        secrets = named_secrets(slack=f"http://127.0.0.1:{server.port}{PATH}")
        outcome = await deliver(egress, target, message, key="k", now=NOW, secrets=secrets)
    return outcome, server.only


async def test_a_message_becomes_blocks(egress: Egress) -> None:
    outcome, got = await send(egress, Message("[HIGH] <hot> & more", "see <!channel> & <http://evil|here>"))
    assert outcome.state == "delivered"
    assert (got.method, got.path, got.headers["content-type"]) == ("POST", PATH, "application/json")
    assert got.json == {
        "text": "[HIGH] &lt;hot&gt; &amp; more",
        "blocks": [
            {
                "type": "header",
                "text": {"type": "plain_text", "text": "[HIGH] <hot> & more", "emoji": True},
            },
            {
                "type": "section",
                "text": {
                    "type": "mrkdwn",
                    "text": "see &lt;!channel&gt; &amp; &lt;http://evil|here&gt;",
                },
            },
        ],
    }


async def test_blocks_that_are_given_are_sent_as_they_are(egress: Egress) -> None:
    blocks: list[dict[str, Any]] = [{"type": "divider"}]
    _, got = await send(egress, Message("s", "t", blocks=blocks))
    assert got.json == {"text": "s", "blocks": blocks}


@pytest.mark.parametrize(
    ("status", "body", "state"),
    [
        (400, b"invalid_blocks", "permanent"),
        (403, b"action_prohibited", "permanent"),
        (404, b"no_service", "permanent"),
        (410, b"channel_is_archived", "permanent"),
        (429, b"rate_limited", "retryable"),
        (500, b"rollup_error", "retryable"),
    ],
)
async def test_the_answer_of_slack_is_shown_without_the_url(
    egress: Egress, status: int, body: bytes, state: str
) -> None:
    outcome, _ = await send(egress, Message("s", "t"), respond(status, body))
    assert outcome.state == state
    assert outcome.text.endswith(f" answered {status}: {body.decode()}")
    assert "s3cret" not in repr(outcome)


def test_texts_stay_within_the_limits_of_slack() -> None:
    assert len(header("x" * 500)["text"]["text"]) == 150
    assert len(section("&" * 5_000)["text"]["text"]) == 3_000
    made = fields({f"title {n}": "x" * 5_000 for n in range(20)})["fields"]
    assert len(made) == 10
    assert {len(one["text"]) for one in made} == {2_000}
    assert section("")["text"]["text"] == " "
