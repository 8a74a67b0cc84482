"""Keys of datapoints, and patterns that match them.

Guarantee: a key has 1 to 16 parts joined by dots, 255 characters at most. A part is a text without
dots, white space, `*`, `>`, `{` and control characters. In a pattern, a part may be `*` (any one part)
or `**` (one part or more). A pattern without either is a key and matches that key only.

Why wildcards stand for whole parts: `dsp.t*` would need a search through every key; whole parts are
looked up.

On failure: an ordinary pydantic validation error, to which the loader adds the position in the
file.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from schemas.wire.subjects import token

MAX_KEY_LENGTH = 255
MAX_TOKEN_BYTES = 1536
"""As a token of a subject. An owner (128 characters of at most 12 bytes) and a key fit in one line of
the protocol of NATS, which has 4,096 bytes."""
MAX_PARTS = 16
_PART = re.compile(r"[^\s.*>{\x00-\x1f\x7f\ud800-\udfff]+")
_WILDCARDS = ("*", "**")
_REGEXES = {"*": r"[^.]+", "**": r".+"}


def check_key(key: str) -> str:
    parts = _split(key)
    for part in parts:
        if not _PART.fullmatch(part):
            raise ValueError(
                f"{key!r} is not a key: write parts joined by dots, without spaces, '*', '>' and '{{'"
            )
    return _check_token(key)


def check_pattern(pattern: str) -> str:
    for part in _split(pattern):
        if part in _WILDCARDS or _PART.fullmatch(part):
            continue
        hint = "'*' stands for a whole part" if "*" in part else "write parts joined by dots, without spaces"
        raise ValueError(f"{pattern!r} is not a key or pattern: {hint}, as in dsp.*.temperature or dsp.**")
    return _check_token(pattern)


def covers(pattern: str, key: str) -> bool:
    return pattern == key if "*" not in pattern else _covers(pattern.split("."), key.split("."))


def overlap(pattern: str, other: str) -> bool:
    """Whether both patterns match a common key."""
    return _overlap(pattern.split("."), other.split("."))


def regex_of(pattern: str) -> str:
    """A regular expression of Postgres and Python for the keys that a pattern matches."""
    parts = (_REGEXES.get(part, re.escape(part)) for part in pattern.split("."))
    return "^" + r"\.".join(parts) + "$"


def specificity(pattern: str) -> tuple[int, ...]:
    """Sort key that puts the more specific pattern first: part by part, text before `*` before
    `**`."""
    return tuple(_WILDCARDS.index(part) + 1 if part in _WILDCARDS else 0 for part in pattern.split("."))


def _split(text: str) -> list[str]:
    if len(text) > MAX_KEY_LENGTH:
        raise ValueError(f"{text[:40]!r}... is too long: a key has at most {MAX_KEY_LENGTH} characters")
    parts = text.split(".")
    if len(parts) > MAX_PARTS:
        raise ValueError(f"{text!r} has {len(parts)} parts: a key has at most {MAX_PARTS}")
    return parts


def _check_token(text: str) -> str:
    if not text.isascii() and len(token(text)) > MAX_TOKEN_BYTES:
        raise ValueError(
            f"{text[:40]!r}... is too long: encoded as part of a subject it has {len(token(text))} bytes, and NATS "
            f"allows {MAX_TOKEN_BYTES}: use fewer characters outside of A-Z a-z 0-9 _ -"
        )
    return text


def _covers(pattern: list[str], key: list[str]) -> bool:
    if not pattern:
        return not key
    if not key or (pattern[0] not in _WILDCARDS and pattern[0] != key[0]):
        return False
    if pattern[0] == "**" and _covers(pattern, key[1:]):
        return True
    return _covers(pattern[1:], key[1:])


def _overlap(pattern: list[str], other: list[str]) -> bool:
    if not pattern or not other:
        return not pattern and not other
    first, second = pattern[0], other[0]
    if first not in _WILDCARDS and second not in _WILDCARDS and first != second:
        return False
    if first == "**" and _overlap(pattern, other[1:]):
        return True
    if second == "**" and _overlap(pattern[1:], other):
        return True
    return _overlap(pattern[1:], other[1:])


Key = Annotated[str, Field(min_length=1), AfterValidator(check_key)]
KeyPattern = Annotated[str, Field(min_length=1), AfterValidator(check_pattern)]
