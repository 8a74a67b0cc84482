"""Mail by SMTP: text and HTML, through the guard.

Guarantee: the connection goes to a checked address; `starttls` and `tls` are required and verified, never
merely tried. The Message-ID is made from the idempotency key, so that a second attempt is the same mail. No
value can add a header or a command. Recipients that the server refuses are reported.

Why a mail that some recipients were refused counts as delivered: trying again would send it twice to the
others.

On failure: answers 4xx, and no answer, are to be tried again; 5xx are permanent.
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

from rules.delivery.egress import Egress, connection_problem, place
from rules.delivery.message import Message
from rules.delivery.outcome import Outcome
from rules.delivery.secrets import Secrets
from schemas.documents.targets import EmailTarget, SmtpServer
from schemas.values.mail_address import parse_mailbox
from schemas.wire.subjects import token
from tocsin.core.errors import InvalidInput, Unreachable

MAX_MAIL_BYTES = 5_000_000
_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_SAID = 200


async def send_email(
    egress: Egress, target: EmailTarget, message: Message, secrets: Secrets, *, key: str, now: datetime
) -> Outcome:
    mail = build_mail(target, message, key=key, now=now)
    raw = mail.as_bytes()
    if len(raw) > MAX_MAIL_BYTES:
        raise InvalidInput(
            f"the mail has {len(raw)} bytes, at most {MAX_MAIL_BYTES} are sent", remedy="send less"
        )
    where = place(target.smtp.host, _port(target.smtp))
    recipients = [parse_mailbox(text).address for text in target.to]
    timeout_s = target.timeout.total_seconds()
    try:
        async with asyncio.timeout(timeout_s):
            refused = await _converse(egress, target, raw, recipients, secrets)
    except TimeoutError:
        raise Unreachable(f"{where} did not take the mail within {timeout_s:g} s") from None
    except SMTPRecipientsRefused as error:
        return _all_refused(where, {one.recipient: (one.code, one.message) for one in error.recipients})
    except SMTPResponseException as error:
        return _answered(where, error.code, error.message)
    except (SMTPException, OSError) as error:
        raise Unreachable(f"{where} cannot be used: {_problem(error)}") from None
    return _taken(where, recipients, refused)


def build_mail(target: EmailTarget, message: Message, *, key: str, now: datetime) -> EmailMessage:
    sender = parse_mailbox(target.from_)
    mail = EmailMessage(policy=SMTP_POLICY)
    mail["From"] = _address(target.from_)
    mail["To"] = tuple(_address(text) for text in target.to)
    # The library decodes `=?utf-8?q?...?=` in what it is given, line breaks included.
    mail["Subject"] = message.title.replace("=?", "= ?")
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
            await _need(smtp, server, "starttls", "set 'security' to what it offers")
            await smtp.starttls()
        if server.username is not None and server.password is not None:
            await _need(smtp, server, "auth", "leave out 'username' and 'password'")
            await smtp.login(secrets.reveal(server.username), secrets.reveal(server.password))
        refused, _ = await smtp.sendmail(sender.address, recipients, raw)
        with suppress(SMTPException, OSError):  # the mail is taken
            await smtp.quit()
        return {address: (answer.code, answer.message) for address, answer in refused.items()}
    finally:
        smtp.close()


async def _need(smtp: SMTP, server: SmtpServer, extension: str, remedy: str) -> None:
    await smtp.ehlo()
    if not smtp.supports_extension(extension):
        raise InvalidInput(f"{server.host} does not offer {extension}: {remedy}")


def _port(server: SmtpServer) -> int:
    return server.port or _PORTS[server.security]


def _address(text: str) -> Address:
    mailbox = parse_mailbox(text)
    return Address(mailbox.name, mailbox.local, mailbox.domain)


def _taken(where: str, recipients: list[str], refused: dict[str, tuple[int, str]]) -> Outcome:
    result: dict[str, Any] = {"target": where, "accepted": [one for one in recipients if one not in refused]}
    text = f"{where} took the mail for {len(recipients) - len(refused)} of {len(recipients)} recipients"
    if refused:
        result["refused"] = {address: _said(*answer) for address, answer in refused.items()}
        text += f", refused: {_listed(refused)}"
    return Outcome("delivered", text, result)


def _all_refused(where: str, refused: dict[str, tuple[int, str]]) -> Outcome:
    """Retryable if any of them may be taken later."""
    again = any(code < 500 for code, _ in refused.values())
    result = {
        "target": where,
        "refused": {address: _said(*answer) for address, answer in refused.items()},
    }
    text = f"{where} refused every recipient: {_listed(refused)}"
    return Outcome("retryable" if again else "permanent", text, result)


def _answered(where: str, code: int, message: str) -> Outcome:
    text = f"{where} answered {_said(code, message)}"
    return Outcome("permanent" if 500 <= code < 600 else "retryable", text, {"target": where, "status": code})


def _listed(refused: dict[str, tuple[int, str]]) -> str:
    return ", ".join(f"{address} ({_said(*answer)})" for address, answer in refused.items())


def _said(code: int, message: str) -> str:
    return f"{code} {' '.join(message.split())[:_SAID]}".strip()


def _problem(error: Exception) -> str:
    """Libraries wrap the reason; certificates are said best by the innermost one."""
    inner: BaseException = error
    while inner.__cause__ is not None:
        inner = inner.__cause__
    if isinstance(inner, OSError) and not isinstance(inner, SMTPException):
        return connection_problem(inner)
    return str(error).lower()[:_SAID]
