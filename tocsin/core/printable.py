"""Text that a terminal shows and does not interpret.

Guarantee: the results hold no control characters (C0, C1), no bidirectional overrides and no other
invisible formatting. `printable` shows them escaped. `plain_json` writes them as `\\uXXXX`, so the
JSON has the same value.
"""

from __future__ import annotations

import re

# Categories Cc (without line feed), Cf, Zl, Zp and Cs. Line feeds of an indented document stay.
_INVISIBLE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
)


def printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def printable_lines(text: str) -> str:
    """Printable text that keeps its line feeds, such as a traceback."""
    return "\n".join(printable(line.replace("\t", "    ")) for line in text.split("\n"))


def plain_json(text: str) -> str:
    """A JSON text without invisible characters. They can occur only inside of its strings."""
    return _INVISIBLE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
