"""Severity levels: names in rules and messages, numbers in records and conditions.

Guarantee: a level is a number from 1, in the order of `TOCSIN_SEVERITIES`, so levels compare by
rank (names compare by letter: "disaster" >= "high" is false). An event without a severity has 0,
which is below every level. Every level is a constant in conditions, so its name cannot be a field
of a condition.

Why a setting and not a document: a number must mean the same in every record of a database. New
levels belong at the end, or stored numbers get other names.

On failure: `InvalidInput` at the first use, with the name of the setting.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from schemas.fields import EVENT_FIELDS, SERIES_FIELDS
from tocsin.core.errors import InvalidInput
from tocsin.core.settings import read_settings

_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_KEYWORDS = (
    *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
    *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    *("bool", "int", "uint", "double", "string", "bytes", "list", "map", "type", "duration", "timestamp"),
)
_RESERVED = {*_KEYWORDS, *EVENT_FIELDS, *SERIES_FIELDS, "alarm", "answers", "trigger"}


@lru_cache(maxsize=1)
def severities() -> Mapping[str, int]:
    return levels(read_settings().severities)


def levels(text: str) -> Mapping[str, int]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if not _NAME.fullmatch(name) or name in _RESERVED or names.count(name) > 1:
            raise InvalidInput(
                f"TOCSIN_SEVERITIES={text!r}: {name!r} cannot name a level",
                remedy="write different lower-case words, separated by commas, that are no names of a condition",
            )
    return MappingProxyType({name: rank for rank, name in enumerate(names, start=1)})


def level(name: str) -> int:
    ranks = severities()
    if name not in ranks:
        near = difflib.get_close_matches(name, ranks, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"the levels are {', '.join(ranks)}"
        raise InvalidInput(f"unknown severity '{name}', {hint}")
    return ranks[name]


def level_name(rank: int) -> str:
    """The name of a recorded severity. A number that no level has any more is returned as text."""
    return next((name for name, number in severities().items() if number == rank), str(rank))
