"""Why a publisher stops: what it must not publish past without a person.

Each has a `kind`, one word for the report, the event and the doctor, and a message that ends with the remedy.
"""

from __future__ import annotations

from typing import ClassVar

from tocsin.core.errors import Refused, TocsinError


class Stopped(TocsinError):
    kind: ClassVar[str]


class StreamAhead(Stopped):
    """The stream has records that the log has not."""

    kind = "diverged"


class StreamDiffers(StreamAhead):
    """The same, after the log has grown: the stream's last message is not the record that the log has there."""


class LogHole(Stopped):
    """Committed records are missing from the table, and no recorded gap says so."""

    kind = "log-hole"


class StreamRefused(Stopped, Refused):
    """The stream is not configured as the chain needs it, or cannot be made."""

    kind = "stream-refused"
