"""Mail addresses: `ops@example.com` or `Operations <ops@example.com>`.

Guarantee: an accepted address is one mailbox without control characters, so it can add neither a
header nor an SMTP command.
"""

import re
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field

_MAILBOX = re.compile(
    r"(?P<local>[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64})@"
    r"(?P<domain>(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)"
)
_NAMED = re.compile(r"(?P<name>[^<>\"\x00-\x1f\x7f\x80-\x9f\ud800-\udfff]{1,200}?)\s*<(?P<mailbox>[^<>\s]+)>")


class Mailbox(NamedTuple):
    name: str
    local: str
    domain: str

    @property
    def address(self) -> str:
        return f"{self.local}@{self.domain}"


def parse_mailbox(text: str) -> Mailbox:
    """`ValueError` if the text is not one address."""
    named = _NAMED.fullmatch(text)
    mailbox = _MAILBOX.fullmatch(named["mailbox"] if named else text)
    if mailbox is None or mailbox["local"].strip(".") != mailbox["local"] or ".." in text or "=?" in text:
        raise ValueError(
            f"{text[:80]!r} is not a mail address: write ops@example.com or Name <ops@example.com>"
        )
    return Mailbox(named["name"].strip() if named else "", mailbox["local"], mailbox["domain"])


def _check_address(text: str) -> str:
    parse_mailbox(text)
    return text


MailAddress = Annotated[str, Field(max_length=320), AfterValidator(_check_address)]
