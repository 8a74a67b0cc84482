"""Numbers as people write them: 86, not 86.0. Pure.

Guarantee: a whole float below 1e15 becomes an int, in texts and in the JSON of messages. Any other
value is unchanged. JSON has one kind of number, so a receiver reads the same value.
"""

from __future__ import annotations

_LARGEST_WHOLE = 1e15


def plain(value: object) -> object:
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST_WHOLE:
        return int(value)
    return value


def plain_text(value: object) -> str:
    """A value for readers: at most four decimals, `true` and `false`, and an empty text for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and abs(value) < _LARGEST_WHOLE:
        text = f"{value:.4f}".rstrip("0").rstrip(".")
        # A small number keeps its digits: 0.00002 is not 0.
        return text if text not in ("0", "-0") or value == 0 else f"{value:.4g}"
    return str(value)
