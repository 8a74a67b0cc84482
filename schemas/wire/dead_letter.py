"""A dead letter: a message that could not be taken, with the reason, on `dead.<kind>`.

Guarantee: the body is what was sent, as text, or base64 where it is not UTF-8; of a long one the beginning. `reason` is
a sentence for the person who sent it.
"""

from __future__ import annotations

import base64
from codecs import getincrementaldecoder
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tocsin.core.instant import instant_text

LONGEST_BODY = 65_536


class DeadLetter(BaseModel):
    """What a consumer of `dead.>` reads; the JSON Schema is made from it."""

    model_config = ConfigDict(extra="allow", frozen=True)

    reason: str = Field(description="Why it was not taken, and what to do.")
    subject: str = Field(description="Where it was sent.")
    at: str = Field(description="When it arrived.")
    body: str = Field(description="What was sent; the beginning of it, if it is long.")
    encoding: Literal["text", "base64"] = Field(description="`base64` for a body that is not UTF-8.")
    size: int = Field(description="Bytes that were sent.")


def dead_letter(reason: str, subject: str, at: datetime, body: bytes) -> DeadLetter:
    kept = body[:LONGEST_BODY]
    encoding: Literal["text", "base64"] = "text"
    try:
        # A cut in the middle of a character is ours, and no reason for base64.
        text = getincrementaldecoder("utf-8")().decode(kept, final=len(kept) == len(body))
    except UnicodeDecodeError:
        text, encoding = base64.b64encode(kept).decode(), "base64"
    return DeadLetter(
        reason=reason, subject=subject, at=instant_text(at), body=text, encoding=encoding, size=len(body)
    )
