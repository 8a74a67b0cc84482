import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from rules.delivery.deliver import deliver
from rules.delivery.egress import Egress
from rules.delivery.email import build_mail
from rules.delivery.message import Message
from rules.delivery.outcome import DeliveryOutcome
from schemas.documents.targets import EmailTarget
from tests.rules.delivery.mail_servers import PASSWORD, USER, mail_server
from tests.rules.delivery.named_secrets import named_secrets
from tests.rules.delivery.receivers import endless, receiver, reset_connection, respond_raw, stall
from tocsin.core.errors import InvalidInput

pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")

ServerTls = Callable[[str], ssl.SSLContext]
KEY = "0b7c6ce5-0f0b-5d0e-8b0a-6f2d4f5f9a21/0"
NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
MESSAGE = Message("[HIGH] Ofen heiß", "65 °C\n.\nend", html="<b>65 °C</b>")
LOGIN: dict[str, Any] = {"username": USER, "password": {"secret": "password"}}


def target(
    port: int, *, to: tuple[str, ...] = ("ops@example.com",), timeout: str = "5s", **smtp: Any
) -> EmailTarget:
    return EmailTarget.model_validate(
        {
            "smtp": {"host": "127.0.0.1", "port": port, "security": "none", **smtp},
            "from": "Tocsin ö <tocsin@alerts.example.com>",
            "to": list(to),
            "timeout": timeout,
        }
    )


async def send(
    egress: Egress, to: EmailTarget, message: Message = MESSAGE, password: str = PASSWORD
) -> DeliveryOutcome:
    return await deliver(egress, to, message, key=KEY, now=NOW, secrets=named_secrets(password=password))


async def test_a_mail_has_text_and_html_and_an_id_of_its_key(egress: Egress) -> None:
    async with mail_server() as mailbox:
        to = ("Ada Lovelace <ada@example.com>", "ops@example.com")
        outcome = await send(egress, target(mailbox.port, to=to))
    where = f"127.0.0.1:{mailbox.port}"
    assert outcome == DeliveryOutcome(
        "delivered",
        f"{where} took the mail for 2 of 2 recipients",
        {"target": where, "accepted": ["ada@example.com", "ops@example.com"]},
    )
    mail, (envelope,) = mailbox.mail(), mailbox.envelopes
    assert envelope.mail_from == "tocsin@alerts.example.com"
    assert envelope.rcpt_tos == ["ada@example.com", "ops@example.com"]
    assert mail["From"] == "Tocsin ö <tocsin@alerts.example.com>"
    assert mail["To"] == "Ada Lovelace <ada@example.com>, ops@example.com"
    assert mail["Subject"] == "[HIGH] Ofen heiß"
    assert mail["Message-ID"] == "<0b7c6ce5-0f0b-5d0e-8b0a-6f2d4f5f9a21%2F0@alerts.example.com>"
    assert mail["Date"].datetime == NOW
    assert mail["Auto-Submitted"] == "auto-generated"
    text, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert text is not None
    assert html is not None
    assert text.get_content().splitlines() == ["65 °C", ".", "end"]
    assert html.get_content().strip() == "<b>65 °C</b>"


async def test_a_second_attempt_is_the_same_mail(egress: Egress) -> None:
    async with mail_server() as mailbox:
        for _ in range(2):
            await send(egress, target(mailbox.port))
    first, second = (envelope.content for envelope in mailbox.envelopes)
    assert isinstance(first, bytes)
    assert isinstance(second, bytes)
    assert (
        first.split(b"Message-ID: ")[1].split(b"\r\n")[0]
        == second.split(b"Message-ID: ")[1].split(b"\r\n")[0]
    )


@pytest.mark.parametrize("login", [False, True])
@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_a_mail_is_sent_over_an_encrypted_connection(
    egress: Egress, server_tls: ServerTls, security: str, login: bool
) -> None:
    context = server_tls("127.0.0.1")
    async with mail_server(**{security: context}, login=login) as mailbox:
        outcome = await send(egress, target(mailbox.port, security=security, **(LOGIN if login else {})))
    assert outcome.state == "delivered", outcome
    assert mailbox.mail()["Subject"] == "[HIGH] Ofen heiß"
    if security == "starttls":
        assert mailbox.encrypted == [True]


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_a_certificate_for_another_name_is_not_accepted(
    egress: Egress, server_tls: ServerTls, security: str
) -> None:
    context = server_tls("other.example")
    async with mail_server(**{security: context}, login=True) as mailbox:
        outcome = await send(egress, target(mailbox.port, security=security, **LOGIN))
    assert outcome.state == "retryable"
    assert "its certificate is not accepted (IP address mismatch" in outcome.text
    assert mailbox.envelopes == []


async def test_starttls_is_required_and_not_optional(egress: Egress) -> None:
    async with mail_server() as mailbox:
        outcome = await send(egress, target(mailbox.port, security="starttls"))
    assert outcome == DeliveryOutcome(
        "permanent", "127.0.0.1 does not offer starttls: set 'security' to what it offers"
    )
    assert mailbox.envelopes == []


async def test_a_server_without_a_login_is_an_error_with_a_remedy(
    egress: Egress, server_tls: ServerTls
) -> None:
    async with mail_server(tls=server_tls("127.0.0.1")) as mailbox:
        outcome = await send(egress, target(mailbox.port, security="tls", **LOGIN))
    assert outcome == DeliveryOutcome(
        "permanent", "127.0.0.1 does not offer auth: leave out 'username' and 'password'"
    )


async def test_an_answer_that_is_not_text_can_be_stored(egress: Egress) -> None:
    async with receiver(stall, greeting=b"554 go \xff\x00 away\r\n") as server:
        outcome = await send(egress, target(server.port))
    assert outcome.text == f"127.0.0.1:{server.port} answered 554 go \ufffd\ufffd away"


async def test_a_wrong_password_is_permanent_and_not_shown(egress: Egress, server_tls: ServerTls) -> None:
    async with mail_server(starttls=server_tls("127.0.0.1"), login=True) as mailbox:
        outcome = await send(
            egress, target(mailbox.port, security="starttls", **LOGIN), password="wrong-s3cret"
        )
    assert outcome.state == "permanent"
    assert outcome.result["status"] == 535
    assert "s3cret" not in repr(outcome)


async def test_a_missing_password_is_permanent_and_named(egress: Egress, server_tls: ServerTls) -> None:
    async with mail_server(starttls=server_tls("127.0.0.1"), login=True) as mailbox:
        to = target(mailbox.port, security="starttls", username=USER, password={"secret": "no"})
        outcome = await send(egress, to)
    assert outcome == DeliveryOutcome(
        "permanent",
        "the worker has no secret 'no': put the file 'no' into its TOCSIN_SECRETS_DIR, or set TOCSIN_SECRET_NO",
    )


async def test_rejected_recipients_are_reported_and_the_others_get_the_mail(egress: Egress) -> None:
    async with mail_server() as mailbox:
        mailbox.refusing["gone@example.com"] = "550 no such user"
        outcome = await send(egress, target(mailbox.port, to=("gone@example.com", "ops@example.com")))
    assert outcome.state == "delivered"
    assert outcome.text.endswith("for 1 of 2 recipients, refused: gone@example.com (550 no such user)")
    assert outcome.result["refused"] == {"gone@example.com": "550 no such user"}
    assert outcome.result["accepted"] == ["ops@example.com"]


@pytest.mark.parametrize(
    ("answers", "state"),
    [
        (("550 no", "551 no"), "permanent"),
        (("550 no", "451 later"), "retryable"),
        (("450 a", "451 b"), "retryable"),
    ],
)
async def test_when_every_recipient_is_rejected_a_temporary_answer_decides(
    egress: Egress, answers: tuple[str, str], state: str
) -> None:
    async with mail_server() as mailbox:
        mailbox.refusing = dict(zip(("a@example.com", "b@example.com"), answers, strict=True))
        outcome = await send(egress, target(mailbox.port, to=("a@example.com", "b@example.com")))
    assert outcome.state == state
    assert outcome.result["refused"] == mailbox.refusing
    assert "refused every recipient: a@example.com (" in outcome.text


@pytest.mark.parametrize(
    ("answer", "state"),
    [("451 try later", "retryable"), ("554 spam", "permanent"), ("552 full", "permanent")],
)
async def test_the_answer_to_the_mail_decides_the_outcome(egress: Egress, answer: str, state: str) -> None:
    async with mail_server() as mailbox:
        mailbox.refusing["DATA"] = answer
        outcome = await send(egress, target(mailbox.port))
    assert outcome.state == state
    assert outcome.text == f"127.0.0.1:{mailbox.port} answered {answer}"


@pytest.mark.parametrize(
    "greeting",
    [b"", b"421 busy\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff\xfe\r\n", b"220 " + b"x" * 100_000],
)
@pytest.mark.parametrize("behave", [stall, reset_connection, endless(b""), respond_raw(b"")])
async def test_a_server_that_fails_may_be_tried_again(egress: Egress, greeting: bytes, behave: Any) -> None:
    async with receiver(behave, greeting=greeting) as server:
        outcome = await send(egress, target(server.port, timeout="300ms"))
    assert outcome.state == "retryable", outcome
    assert outcome.text.startswith(f"127.0.0.1:{server.port} ")


async def test_a_banner_of_554_is_permanent(egress: Egress) -> None:
    async with receiver(stall, greeting=b"554 go away\r\n") as server:
        outcome = await send(egress, target(server.port))
    assert outcome.state == "permanent"


async def test_an_internal_mail_server_is_rejected_unless_it_is_allowed(guard: Callable[..., Egress]) -> None:
    async with mail_server() as mailbox:
        outcome = await send(guard(allow=""), target(mailbox.port))
    assert outcome.state == "permanent"
    assert "127.0.0.1 is a loopback address" in outcome.text
    assert mailbox.connections == 0


@pytest.mark.parametrize(
    "subject",
    [
        "a\r\nBcc: evil@example.com",
        "a\nBcc: evil@example.com",
        "a\rBcc: evil@example.com",
        "a\r\n\r\nbody",
        "a\u2028Bcc: evil@example.com",
        "a\x85Bcc: evil@example.com",
        "a\x0bBcc: evil@example.com",
        "x" * 5_000 + "\r\nBcc: evil@example.com",
        "=?utf-8?q?a=0d=0aBcc:_evil@example.com?=",
    ],
)
async def test_no_subject_can_add_a_header(egress: Egress, subject: str) -> None:
    async with mail_server() as mailbox:
        outcome = await send(egress, target(mailbox.port), Message(subject, "text"))
    assert outcome.state == "delivered"
    mail = mailbox.mail()
    assert mail["Bcc"] is None
    assert "\n" not in mail["Subject"]
    assert len(mail["Subject"]) <= 200
    assert mail.get_content().strip() == "text"
    assert sorted(mail.keys()) == sorted(
        [
            *("From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "Content-Type"),
            *("Content-Transfer-Encoding", "MIME-Version"),
        ]
    )


@pytest.mark.parametrize("key", ["a\r\nBcc: evil@example.com", "<a@b> c", "ü/ö", ""])
def test_no_key_can_add_a_header(key: str) -> None:
    mail = build_mail(target(25), MESSAGE, key=key, now=NOW)
    assert mail["Bcc"] is None
    lines = [line for line in mail.as_bytes().splitlines() if line.lower().startswith(b"message-id:")]
    assert len(lines) == 1
    assert lines[0].endswith(b"@alerts.example.com>")


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
def test_a_text_that_cannot_be_encoded_is_rejected(text: str) -> None:
    for subject, body in ((text, ""), ("", text)):
        with pytest.raises(InvalidInput, match="NUL or a lone surrogate"):
            Message(subject, body)


async def test_a_mail_that_is_too_large_is_rejected_before_connecting(egress: Egress) -> None:
    async with mail_server() as mailbox:
        outcome = await send(egress, target(mailbox.port), Message("s", "x" * 10_000_000))
    assert outcome.state == "permanent"
    assert "at most 5000000 are sent" in outcome.text
    assert mailbox.connections == 0
