"""The size of the program that a regular expression compiles to, without compiling it.

Guarantee: `regex_weight` is an upper bound in the unit of one literal character. Counted
repetitions multiply what they repeat, because the engine writes out each of them. The engine
compiles a regular expression at every evaluation, so its weight is a cost even where nothing
matches.
"""

from __future__ import annotations

import re

_REPEAT = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_UNICODE = re.compile(r"\\[pP](?:\{[^}]*\}|.)")
_CLASS_WEIGHT = 2
# The encodings of any character have several lengths.
_ANY_WEIGHT = 3
_UNICODE_WEIGHT = 100


def regex_weight(pattern: str) -> int:
    """The weight of a pattern that the engine accepts."""
    groups: list[int] = [0]
    last = 0
    """The weight of the atom that a repetition would repeat."""
    position, end = 0, len(pattern)
    while position < end:
        character = pattern[position]
        repeat = _REPEAT.match(pattern, position)
        if repeat is not None:
            least, most = repeat[1], repeat[2]
            groups[-1] += last * max(0, int(most or least or 0) - 1) + last
            last *= max(1, int(most or least or 0))
            position = repeat.end()
            continue
        if character == "(":
            groups.append(0)
            position += 1
            continue
        if character == ")" and len(groups) > 1:
            last = groups.pop() + 1
            position += 1
        elif character == "\\":
            named = _UNICODE.match(pattern, position)
            last = _CLASS_WEIGHT if named is None else _UNICODE_WEIGHT
            position = position + 2 if named is None else named.end()
        elif character == "[":
            last, position = _class(pattern, position)
        else:
            last = _ANY_WEIGHT if character == "." else 1
            position += 1
        groups[-1] += last
    return sum(groups) + 1


def _class(pattern: str, begin: int) -> tuple[int, int]:
    """The weight of a class, and the position behind it."""
    position = begin + 1
    if pattern[position : position + 1] == "^":
        position += 1
    if pattern[position : position + 1] == "]":
        position += 1
    while position < len(pattern) and pattern[position] != "]":
        if pattern.startswith("[:", position):
            position = max(pattern.find(":]", position) + 2, position + 2)
        else:
            position += 2 if pattern[position] == "\\" else 1
    text = pattern[begin:position]
    unicode_parts = text.count("\\p") + text.count("\\P")
    return _CLASS_WEIGHT + len(text) // 8 + unicode_parts * _UNICODE_WEIGHT, position + 1
