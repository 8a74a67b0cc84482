"""A link in a message that acknowledges one alarm, as text. Its signature is made by the database.

Guarantee: the text names the alarm, the instant at which the link ends and the channel that it was sent to,
and each of them is signed. `hide_links` removes the signature from what is logged or recorded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

LASTS = timedelta(days=7)
PATH = "/acknowledge/"
_DAY_S = 86_400
_TEXT = re.compile(
    r"tocsin_link_(?P<alarm>[0-9a-f]{32})(?P<expires>[0-9a-f]{10})(?P<signature>[0-9a-f]{40})_(?P<channel>.{1,128})"
)
_SIGNED = re.compile("(tocsin_link_)[0-9a-f]+")


@dataclass(frozen=True)
class AlarmLink:
    alarm_id: UUID
    expires_s: int
    """Unix time."""
    channel: str
    signature: str

    @property
    def text(self) -> str:
        return f"tocsin_link_{self.alarm_id.hex}{self.expires_s:010x}{self.signature}_{self.channel}"

    @classmethod
    def parse(cls, text: str) -> AlarmLink | None:
        """The link of a text, whose signature is not checked; None for any other text."""
        match = _TEXT.fullmatch(text)
        if match is None:
            return None
        return cls(UUID(match["alarm"]), int(match["expires"], 16), match["channel"], match["signature"])


def expiry_s(now: datetime) -> int:
    """The end of a link that is made now: the same for all attempts of a day to send a message."""
    return (int((now + LASTS).timestamp()) // _DAY_S + 1) * _DAY_S


def hide_links(text: str) -> str:
    return _SIGNED.sub(r"\1...", text)
