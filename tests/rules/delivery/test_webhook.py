import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from clock.time_source import wall_now
from rules.delivery.deliver import deliver
from rules.delivery.egress import Egress
from rules.delivery.message import Message
from rules.delivery.outcome import DeliveryOutcome
from schemas.documents.targets import WebhookTarget
from tests.rules.delivery.named_secrets import named_secrets
from tests.rules.delivery.receivers import Receiver, receiver, reset_connection, respond, stall

KEY = "0b7c6ce5-0f0b-5d0e-8b0a-6f2d4f5f9a21/0"
NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
FIRST, SECOND = (f"whsec_{base64.b64encode(letter * 32).decode()}" for letter in (b"a", b"b"))
MESSAGE = Message("[HIGH] hot", "65.2 °C", payload={"rule": "hot", "value": 65.2, "unit": "°C"})

MISSING = (
    "the worker has no secret 'no': put the file 'no' into its TOCSIN_SECRETS_DIR, or set TOCSIN_SECRET_NO"
)


async def send(
    egress: Egress, server: Receiver, message: Message = MESSAGE, now: datetime = NOW, **keys: Any
) -> DeliveryOutcome:
    target = WebhookTarget.model_validate({"url": f"http://127.0.0.1:{server.port}/hook", **keys})
    secrets = named_secrets(
        first=FIRST,
        unpadded=FIRST.rstrip("="),
        second=SECOND,
        auth="Bearer s3cret",
        bad="s3cret",
        nl="a\nb",
    )
    return await deliver(egress, target, message, key=KEY, now=now, secrets=secrets)


async def test_a_webhook_carries_its_payload_and_its_key(egress: Egress) -> None:
    async with receiver(respond(204, b"")) as server:
        outcome = await send(egress, server, method="PATCH", headers={"X-Site": "plant-7"})
    where = f"127.0.0.1:{server.port}"
    assert outcome == DeliveryOutcome("delivered", f"{where} answered 204", {"target": where, "status": 204})
    got = server.only
    assert (got.method, got.path) == ("PATCH", "/hook")
    assert got.json == {"rule": "hot", "value": 65.2, "unit": "°C"}
    assert got.headers["content-type"] == "application/json"
    assert got.headers["x-site"] == "plant-7"
    assert got.headers["idempotency-key"] == got.headers["webhook-id"] == KEY
    assert got.headers["webhook-timestamp"] == str(int(NOW.timestamp()))
    assert "webhook-signature" not in got.headers


async def test_a_receiver_that_knows_any_one_of_the_secrets_accepts_the_message(egress: Egress) -> None:
    async with receiver() as server:
        await send(egress, server, now=wall_now(), secrets=[{"secret": "first"}, {"secret": "second"}])
    got = server.only
    for secret in (FIRST, SECOND, FIRST.rstrip("=")):
        assert Webhook(secret).verify(got.body, got.headers) == got.json
    stranger = f"whsec_{base64.b64encode(b'c' * 32).decode()}"
    with pytest.raises(WebhookVerificationError):
        Webhook(stranger).verify(got.body, got.headers)
    for changed in ({**got.headers, "webhook-id": "other"}, {**got.headers, "webhook-timestamp": "1"}):
        with pytest.raises(WebhookVerificationError):
            Webhook(FIRST).verify(got.body, changed)


async def test_a_signing_secret_may_be_written_without_padding(egress: Egress) -> None:
    async with receiver() as server:
        await send(egress, server, now=wall_now(), secrets=[{"secret": "unpadded"}])
    assert Webhook(FIRST).verify(server.only.body, server.only.headers)


async def test_a_header_may_be_a_secret(egress: Egress) -> None:
    async with receiver() as server:
        await send(egress, server, headers={"Authorization": {"secret": "auth"}})
    assert server.only.headers["authorization"] == "Bearer s3cret"


async def test_a_message_without_a_payload_is_sent_as_subject_and_text(egress: Egress) -> None:
    async with receiver() as server:
        await send(egress, server, Message("[HIGH] hot\nline", "65 °C"))
    assert server.only.json == {"subject": "[HIGH] hot line", "text": "65 °C"}


async def test_the_url_may_be_a_secret(egress: Egress) -> None:
    async with receiver(respond(404)) as server:
        target = WebhookTarget.model_validate({"url": {"secret": "url"}})
        secrets = named_secrets(url=f"http://127.0.0.1:{server.port}/s3cret-path")
        outcome = await deliver(egress, target, MESSAGE, key=KEY, now=NOW, secrets=secrets)
    assert server.only.path == "/s3cret-path"
    assert outcome.text == f"127.0.0.1:{server.port} answered 404: ok"


@pytest.mark.parametrize(
    ("status", "state"),
    [(200, "delivered"), (302, "permanent"), (400, "permanent"), (429, "retryable"), (503, "retryable")],
)
async def test_the_answer_decides_the_outcome(egress: Egress, status: int, state: str) -> None:
    async with receiver(respond(status, b"busy", retry_after="30")) as server:
        outcome = await send(egress, server)
    assert outcome.state == state
    assert outcome.retry_after == (timedelta(seconds=30) if state == "retryable" else None)
    assert outcome.result["status"] == status


@pytest.mark.parametrize("behave", [reset_connection, stall])
async def test_a_server_that_does_not_answer_may_be_tried_again(egress: Egress, behave: Any) -> None:
    async with receiver(behave) as server:
        outcome = await send(egress, server, timeout="200ms")
    assert outcome.state == "retryable"
    assert outcome.text.startswith(f"127.0.0.1:{server.port} ")


async def test_no_result_holds_a_secret_even_when_the_server_repeats_it(egress: Egress) -> None:
    echo = json.dumps({"you": "sent Bearer s3cret", "and": FIRST}).encode()
    async with receiver(respond(400, echo)) as server:
        outcome = await send(
            egress, server, headers={"Authorization": {"secret": "auth"}}, secrets=[{"secret": "first"}]
        )
    assert outcome.text.endswith('answered 400: {"you": "sent ***", "and": "***"}')


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (
            {"headers": {"A": {"secret": "no"}}},
            MISSING,
        ),
        (
            {"secrets": [{"secret": "bad"}]},
            "the secret {secret: bad} cannot sign: it must be whsec_ and the base64 of 24 to 64 bytes",
        ),
        (
            {"secrets": [{"secret": "no"}]},
            MISSING,
        ),
        (
            {"headers": {"A": {"secret": "nl"}}},
            "the header 'A' has a value that cannot be sent: use printable characters, no line breaks",
        ),
    ],
)
async def test_a_secret_that_is_missing_or_unfit_is_permanent_and_named(
    egress: Egress, keys: dict[str, Any], text: str
) -> None:
    async with receiver() as server:
        assert await send(egress, server, **keys) == DeliveryOutcome("permanent", text)
    assert server.connections == 0


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"k": "a\0b"}, "U+0000"),
        ({"k": "\ud800"}, "U+D800"),
        ({"k": float("nan")}, "not JSON"),
        ({"k": 2**64}, "beyond 64 bits"),
        ({"k": b"\xff"}, "which is not JSON"),
        ({"k": deep(5_000)}, "nested more than 64 deep"),
        ({"k": "x" * 10_000_000}, "has 10000008 bytes, at most 1000000 are sent"),
    ],
)
async def test_a_payload_that_is_not_plain_json_is_rejected(
    egress: Egress, payload: dict[str, Any], said: str
) -> None:
    async with receiver() as server:
        outcome = await send(egress, server, Message("s", "t", payload=payload))
    assert outcome.state == "permanent"
    assert said in outcome.text
    assert server.connections == 0


async def test_an_internal_address_is_permanent(egress: Egress) -> None:
    target = WebhookTarget.model_validate({"url": "http://169.254.169.254/latest/meta-data/"})
    outcome = await deliver(egress, target, MESSAGE, key=KEY, now=NOW)
    assert outcome == DeliveryOutcome(
        "permanent",
        "169.254.169.254 is a metadata address: allow it with TOCSIN_EGRESS_ALLOW",
    )


async def test_an_unexpected_error_is_an_outcome_and_shows_no_secret(
    egress: Egress, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def broken(_: Egress, request: Any) -> None:
        raise KeyError(request.headers["Authorization"])

    monkeypatch.setattr("rules.delivery.webhook.request", broken)
    async with receiver() as server:
        outcome = await send(egress, server, headers={"Authorization": {"secret": "auth"}})
    assert outcome == DeliveryOutcome("retryable", "it failed unexpectedly: KeyError: '***'")
    written = capsys.readouterr()
    assert "s3cret" not in written.out + written.err
    assert "delivery failed unexpectedly" in written.out + written.err
