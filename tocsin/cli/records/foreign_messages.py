"""Messages of the record stream that are not records of Tocsin.

Any client with the permission to publish to the subjects of the stream can leave one behind, and after
`tocsin cdc adopt` it stays. Commands that show the stream mark such a message and continue.
"""

from __future__ import annotations

from tocsin.cli.output import shortened

_LONGEST = 100
NO_RECORD = (KeyError, TypeError, ValueError, AttributeError, RecursionError)
"""The errors of reading a foreign message as a record."""


def foreign_text(data: bytes) -> str:
    text = data[: _LONGEST * 4].decode(errors="replace")
    return f"not a record of tocsin: {shortened(text, _LONGEST)}"
