"""What is sent, in the forms that targets take.

Guarantee: a message has a subject and a text that can be encoded; each richer form falls back to them.
"""

import re
from dataclasses import dataclass
from typing import Any

from tocsin.core.errors import InvalidInput

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_LONGEST_SUBJECT = 200


@dataclass(frozen=True)
class Message:
    subject: str
    text: str
    html: str | None = None
    blocks: list[dict[str, Any]] | None = None
    """Block Kit of Slack."""
    payload: dict[str, Any] | None = None
    """The body of a webhook."""

    def __post_init__(self) -> None:
        for text in (self.subject, self.text, self.html or ""):
            if _UNSTORABLE.search(text):
                raise InvalidInput(
                    "a message holds NUL or a lone surrogate, which cannot be sent", remedy="leave it out"
                )

    @property
    def title(self) -> str:
        """The subject on one line: no value in it can start another header."""
        line = _CONTROL.sub(" ", self.subject).strip()
        return line if len(line) <= _LONGEST_SUBJECT else f"{line[: _LONGEST_SUBJECT - 3]}..."
