"""A real SMTP server (aiosmtpd) in the test's own loop: plain, STARTTLS or TLS, with or without a
login."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

USER, PASSWORD = "tocsin", "s3cret-pass"


@dataclass
class Mailbox:
    """`refusing` maps a recipient, or `DATA`, to the answer it gets. While it stalls, `DATA` gets none."""

    port: int = 0
    refusing: dict[str, str] = field(default_factory=dict)
    is_stalling: bool = False
    envelopes: list[Envelope] = field(default_factory=list)
    connections: int = 0
    encrypted: list[bool] = field(default_factory=list)

    def mail(self) -> EmailMessage:
        """The only one; a method, since the server looks at every property."""
        (envelope,) = self.envelopes
        assert isinstance(envelope.content, bytes)
        parsed = message_from_bytes(envelope.content, policy=default)
        assert isinstance(parsed, EmailMessage)
        return parsed

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refusing:
            return self.refusing[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if self.is_stalling:
            await asyncio.Event().wait()
        if "DATA" in self.refusing:
            return self.refusing["DATA"]
        self.envelopes.append(envelope)
        self.encrypted.append(session.ssl is not None)
        return "250 taken"


def _login(_: Any, __: Any, ___: Any, mechanism: str, given: Any) -> AuthResult:
    right = isinstance(given, LoginPassword) and given == LoginPassword(USER.encode(), PASSWORD.encode())
    return AuthResult(success=right, handled=False)


@asynccontextmanager
async def mail_server(
    *,
    starttls: ssl.SSLContext | None = None,
    tls: ssl.SSLContext | None = None,
    login: bool = False,
) -> AsyncIterator[Mailbox]:
    mailbox = Mailbox()
    sessions: list[SMTP] = []

    def made() -> SMTP:
        mailbox.connections += 1
        protocol = SMTP(
            mailbox,
            hostname="mail.example",
            tls_context=starttls,
            require_starttls=starttls is not None,
            authenticator=_login if login else None,
            auth_required=login,
            auth_require_tls=tls is None or not login,  # a server with TLS from the start does not count it
            data_size_limit=2**25,
            loop=asyncio.get_running_loop(),
        )
        sessions.append(protocol)
        return protocol

    server = await asyncio.get_running_loop().create_server(made, "127.0.0.1", 0, ssl=tls)
    mailbox.port = server.sockets[0].getsockname()[1]
    try:
        yield mailbox
    finally:
        server.close()
        tasks = [task for one in sessions if (task := one._handler_coroutine) is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
