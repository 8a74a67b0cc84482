"""Errors that stop a publisher until an operator decides.

Each has a `kind`, one word for the report, the event and the doctor.
"""

from __future__ import annotations

from typing import ClassVar

from tocsin.core.errors import Refused, TocsinError


class Stopped(TocsinError):
    """The publisher has stopped.

    It is started again, and stops again until the cause is gone.
    """

    kind: ClassVar[str]


class StreamAhead(Stopped):
    """The stream has records that the log lacks."""

    kind = "diverged"


class StreamDiffers(StreamAhead):
    """The last message of the stream is not the record of the log.

    The log has grown since it lost records.
    """


class LogHole(Stopped):
    """Committed records are missing from the table, and no gap is recorded for them."""

    kind = "log-hole"


class StreamRefused(Stopped, Refused):
    """The stream is not configured as the chain needs it, or cannot be created."""

    kind = "stream-refused"
