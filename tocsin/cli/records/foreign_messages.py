"""Messages of the record stream that are no records of ours.

Whoever may publish to the stream's subjects can leave one behind, and where the loss was accepted (`tocsin cdc
adopt`) it stays. Whoever shows the stream says so and goes on.
"""

from __future__ import annotations

_LONGEST = 100
# What reading one as a record fails with.
NO_RECORD = (KeyError, TypeError, ValueError, AttributeError, RecursionError)


def foreign_text(data: bytes) -> str:
    text = data[: _LONGEST * 4].decode(errors="replace")
    return f"not a record of tocsin: {text if len(text) <= _LONGEST else f'{text[: _LONGEST - 3]}...'}"
