"""Shows messages of the record stream that are not Tocsin records.

Any client with the permission to publish to the subjects of the stream can publish one. `tocsin cdc
adopt` keeps it. Commands that show the stream (`tail`, `up`) mark such a message and continue.
"""

from __future__ import annotations

from tocsin.cli.output import shortened

_MAX_LENGTH = 100
NOT_A_RECORD_ERRORS = (KeyError, TypeError, ValueError, AttributeError, RecursionError)
"""The errors of reading a foreign message as a record."""


def foreign_text(data: bytes) -> str:
    # A character has at most 4 bytes.
    text = data[: _MAX_LENGTH * 4].decode(errors="replace")
    return f"not a record of tocsin: {shortened(text, _MAX_LENGTH)}"
