"""A message in the forms that targets accept.

Guarantee: a message has a subject and a text that can be encoded. A target that needs another form
builds it from them if the message has none.
"""

import re
from dataclasses import dataclass
from typing import Any

from tocsin.core.errors import InvalidInput

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_MAX_SUBJECT_LENGTH = 200


@dataclass(frozen=True)
class Message:
    subject: str
    text: str
    html: str | None = None
    blocks: list[dict[str, Any]] | None = None
    """Slack blocks (Block Kit)."""
    payload: dict[str, Any] | None = None
    """The body of a webhook."""
    problem: str | None = None
    """Why a text of the document could not be filled: the default text replaces it."""

    def __post_init__(self) -> None:
        for text in (self.subject, self.text, self.html or ""):
            if _UNSTORABLE.search(text):
                raise InvalidInput(
                    "a message holds NUL or a lone surrogate, which cannot be sent", remedy="leave it out"
                )

    @property
    def subject_line(self) -> str:
        """The subject on one line, so that no value in it can begin another header."""
        line = _CONTROL.sub(" ", self.subject).strip()
        return line if len(line) <= _MAX_SUBJECT_LENGTH else f"{line[: _MAX_SUBJECT_LENGTH - 3]}..."
