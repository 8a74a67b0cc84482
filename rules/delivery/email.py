"""Delivers mail by SMTP, as text and HTML.

Guarantee: the connection passes the egress guard. `starttls` and `tls` are required and verified,
never optional. The Message-ID is made from the idempotency key, so that a second attempt is the
same mail. No value can add a header or a command. The outcome lists the recipients that the server
rejects.

Why a mail counts as delivered if the server rejects some of its recipients: another attempt would
send it to the others twice.

On failure: answers 4xx and missing answers are retryable; answers 5xx are permanent.
"""

import asyncio
from contextlib import suppress
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import format_datetime
from typing import Any

from aiosmtplib import (
    SMTP,
    SMTPException,
    SMTPRecipientsRefused,
    SMTPResponseException,
)

from rules.delivery.egress import Egress, connection_problem, host_and_port
from rules.delivery.message import Message
from rules.delivery.outcome import DeliveryOutcome
from rules.delivery.secrets import Secrets
from schemas.documents.targets import EmailTarget, SmtpServer
from schemas.values.mail_address import parse_mailbox
from schemas.wire.subjects import token
from tocsin.core.errors import InvalidInput, Unreachable

MAX_MAIL_BYTES = 5_000_000
_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_MAX_ANSWER_LENGTH = 200


async def send_email(
    egress: Egress, target: EmailTarget, message: Message, secrets: Secrets, *, key: str, now: datetime
) -> DeliveryOutcome:
    mail = build_mail(target, message, key=key, now=now)
    raw = mail.as_bytes()
    if len(raw) > MAX_MAIL_BYTES:
        raise InvalidInput(
            f"the mail has {len(raw)} bytes, at most {MAX_MAIL_BYTES} are sent", remedy="send less"
        )
    where = host_and_port(target.smtp.host, _port(target.smtp))
    recipients = [parse_mailbox(text).address for text in target.to]
    timeout_s = target.timeout.total_seconds()
    try:
        async with asyncio.timeout(timeout_s):
            rejected = await _converse(egress, target, raw, recipients, secrets)
    except TimeoutError:
        raise Unreachable(f"{where} did not take the mail within {timeout_s:g} s") from None
    except SMTPRecipientsRefused as error:
        answers = {answer.recipient: (answer.code, answer.message) for answer in error.recipients}
        return _all_rejected(where, answers)
    except SMTPResponseException as error:
        return _answered(where, error.code, error.message)
    except (SMTPException, OSError) as error:
        raise Unreachable(f"{where} cannot be used: {_problem(error)}") from None
    return _accepted(where, recipients, rejected)


def build_mail(target: EmailTarget, message: Message, *, key: str, now: datetime) -> EmailMessage:
    sender = parse_mailbox(target.from_)
    mail = EmailMessage(policy=SMTP_POLICY)
    mail["From"] = _address(target.from_)
    mail["To"] = tuple(_address(text) for text in target.to)
    # The library decodes `=?utf-8?q?...?=` in what it is given, line breaks included.
    mail["Subject"] = message.subject_line.replace("=?", "= ?")
    mail["Date"] = format_datetime(now)
    mail["Message-ID"] = f"<{token(key)}@{sender.domain}>"
    mail["Auto-Submitted"] = "auto-generated"  # asks for no out-of-office answers
    mail.set_content(message.text)
    if message.html is not None:
        mail.add_alternative(message.html, subtype="html")
    return mail


async def _converse(
    egress: Egress, target: EmailTarget, raw: bytes, recipients: list[str], secrets: Secrets
) -> dict[str, tuple[int, str]]:
    server, sender = target.smtp, parse_mailbox(target.from_)
    # Before connecting: a missing secret is reported whatever the server does.
    login = await _login(server, secrets)
    smtp = SMTP(
        hostname=server.host,
        sock=await egress.open(server.host, _port(server)),
        use_tls=server.security == "tls",
        start_tls=False,
        tls_context=egress.tls,
        local_hostname=sender.domain,
        timeout=None,
    )
    try:
        await smtp.connect()
        if server.security == "starttls":
            await _require(smtp, server, "starttls", "set 'security' to what it offers")
            await smtp.starttls()
        if login is not None:
            await _require(smtp, server, "auth", "leave out 'username' and 'password'")
            await smtp.login(*login)
        rejected, _ = await smtp.sendmail(sender.address, recipients, raw)
        with suppress(SMTPException, OSError):  # the server has accepted the mail
            await smtp.quit()
        return {address: (answer.code, answer.message) for address, answer in rejected.items()}
    finally:
        smtp.close()


async def _login(server: SmtpServer, secrets: Secrets) -> tuple[str, str] | None:
    if server.username is None or server.password is None:
        return None
    username = await secrets.reveal_to(server.host, server.username)
    return username, await secrets.reveal_to(server.host, server.password)


async def _require(smtp: SMTP, server: SmtpServer, extension: str, remedy: str) -> None:
    await smtp.ehlo()
    if not smtp.supports_extension(extension):
        raise InvalidInput(f"{server.host} does not offer {extension}", remedy=remedy)


def _port(server: SmtpServer) -> int:
    return server.port or _PORTS[server.security]


def _address(text: str) -> Address:
    mailbox = parse_mailbox(text)
    return Address(mailbox.name, mailbox.local, mailbox.domain)


def _accepted(where: str, recipients: list[str], rejected: dict[str, tuple[int, str]]) -> DeliveryOutcome:
    accepted = [address for address in recipients if address not in rejected]
    result: dict[str, Any] = {"target": where, "accepted": accepted}
    text = f"{where} took the mail for {len(accepted)} of {len(recipients)} recipients"
    if rejected:
        result["refused"] = {address: _answer_text(*answer) for address, answer in rejected.items()}
        text += f", refused: {_list_text(rejected)}"
    return DeliveryOutcome("delivered", text, result)


def _all_rejected(where: str, rejected: dict[str, tuple[int, str]]) -> DeliveryOutcome:
    """Retryable if the server may accept one of the recipients later."""
    is_retryable = any(code < 500 for code, _ in rejected.values())
    result = {
        "target": where,
        "refused": {address: _answer_text(*answer) for address, answer in rejected.items()},
    }
    text = f"{where} refused every recipient: {_list_text(rejected)}"
    return DeliveryOutcome("retryable" if is_retryable else "permanent", text, result)


def _answered(where: str, code: int, message: str) -> DeliveryOutcome:
    text = f"{where} answered {_answer_text(code, message)}"
    return DeliveryOutcome(
        "permanent" if 500 <= code < 600 else "retryable", text, {"target": where, "status": code}
    )


def _list_text(rejected: dict[str, tuple[int, str]]) -> str:
    return ", ".join(f"{address} ({_answer_text(*answer)})" for address, answer in rejected.items())


def _answer_text(code: int, message: str) -> str:
    return f"{code} {' '.join(message.split())[:_MAX_ANSWER_LENGTH]}".strip()


def _problem(error: Exception) -> str:
    """The innermost reason: libraries wrap it, and it describes a certificate best."""
    inner: BaseException = error
    while inner.__cause__ is not None:
        inner = inner.__cause__
    if isinstance(inner, OSError) and not isinstance(inner, SMTPException):
        return connection_problem(inner)
    return str(error).lower()[:_MAX_ANSWER_LENGTH]
