"""A dead letter: a message that was rejected, with the reason, on `dead.<kind>`.

Guarantee: the body is the body of the message, as text, or as base64 if it is not UTF-8; of a long
one the beginning. `reason` is a sentence for its producer.
"""

from __future__ import annotations

import base64
from codecs import getincrementaldecoder
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tocsin.core.instant import instant_text

MAX_BODY_BYTES = 65_536
MAX_REASON_LENGTH = 4_000


class DeadLetter(BaseModel):
    """A message on `dead.>`."""

    model_config = ConfigDict(extra="allow", frozen=True)

    reason: str = Field(description="Why it was rejected, and the remedy.")
    subject: str = Field(description="Subject of the message.")
    at: str = Field(description="When it arrived.")
    body: str = Field(description="Body of the message; the beginning of a long one.")
    encoding: Literal["text", "base64"] = Field(description="`base64` for a body that is not UTF-8.")
    size: int = Field(description="Size of the body in bytes.")


def dead_letter(reason: str, subject: str, at: datetime, body: bytes) -> DeadLetter:
    beginning = body[:MAX_BODY_BYTES]
    encoding: Literal["text", "base64"] = "text"
    try:
        # The cut may divide a character; that is no reason for base64.
        text = getincrementaldecoder("utf-8")().decode(beginning, final=len(beginning) == len(body))
    except UnicodeDecodeError:
        text, encoding = base64.b64encode(beginning).decode(), "base64"
    return DeadLetter(
        reason=reason[:MAX_REASON_LENGTH],
        subject=subject,
        at=instant_text(at),
        body=text,
        encoding=encoding,
        size=len(body),
    )


def shortened(letter: DeadLetter, most_bytes: int) -> DeadLetter:
    """The letter with at most so many bytes of the message."""
    body = base64.b64decode(letter.body) if letter.encoding == "base64" else letter.body.encode()
    if len(body) <= most_bytes:
        return letter
    beginning = body[:most_bytes]
    text = (
        base64.b64encode(beginning).decode()
        if letter.encoding == "base64"
        else beginning.decode(errors="ignore")
    )
    return letter.model_copy(update={"body": text})
