"""Checks that data is plain JSON.

Guarantee: a value that passes has null, booleans, 64-bit integers, finite numbers, texts without
NUL or lone surrogates, lists, and objects with text keys, nested at most 64 deep.

Why each: the expression engine cuts a text at NUL (so "ab\\0c" would equal "ab"), raises on a lone
surrogate, crashes the process on data some thousands of levels deep, and treats a whole object as
an error if one of its numbers does not fit in 64 bits. Postgres rejects NUL in jsonb as well.

On failure: `InvalidInput` with the path of the first wrong value.
"""

import math
import re

from tocsin.core.errors import InvalidInput

MAX_DEPTH = 64
_INT_MAX = 2**63 - 1
_INT_MIN = -(2**63)
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def check_json_shape(value: object, path: str = "payload") -> None:
    # An explicit stack, so that hostile data cannot exhaust the call stack.
    pending: list[tuple[object, str, int]] = [(value, path, 1)]
    while pending:
        item, where, depth = pending.pop()
        if isinstance(item, dict):
            _check_depth(where, depth)
            for key, member in item.items():
                if not isinstance(key, str):
                    raise InvalidInput(f"{where} has the key {key!r}: keys must be text")
                _check_text(key, f"a key of {where}")
                pending.append((member, f"{where}.{key}", depth + 1))
        elif isinstance(item, list):
            _check_depth(where, depth)
            pending.extend((member, f"{where}[{index}]", depth + 1) for index, member in enumerate(item))
        else:
            _check_scalar(item, where)


def _check_depth(where: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidInput(f"{where[:80]}... is nested more than {MAX_DEPTH} deep", remedy="flatten it")


def _check_scalar(item: object, where: str) -> None:
    if isinstance(item, str):
        _check_text(item, where)
    elif item is None or isinstance(item, bool):
        return
    elif isinstance(item, int):
        if not _INT_MIN <= item <= _INT_MAX:
            raise InvalidInput(f"{where} is an integer beyond 64 bits", remedy="send it as text")
    elif isinstance(item, float):
        if not math.isfinite(item):
            raise InvalidInput(f"{where} is {item}, which is not JSON", remedy="send a finite number or null")
    else:
        raise InvalidInput(
            f"{where} is of type {type(item).__name__}, which is not JSON", remedy="send it as text"
        )


def _check_text(text: str, where: str) -> None:
    match = _UNSTORABLE.search(text)
    if match:
        raise InvalidInput(
            f"{where} holds the character U+{ord(match.group()):04X}",
            remedy="leave out NUL and lone surrogates",
        )
