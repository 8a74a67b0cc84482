"""Finds the alarms that a matcher of an operator matches.

The matcher is evaluated in chunks, so that other tasks of the process run in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from rules.alarms.queries import list_alarms
from rules.language.cel import AlarmMatcher, ExpressionInvalid, compile_matcher
from rules.suppression import matched_alarm
from tocsin.core.db import Connection
from tocsin.core.errors import InvalidInput

Row = dict[str, Any]
_ALL = 100_000
_AT_ONCE = 500


def compile_where(where: str, place: str = "--where") -> AlarmMatcher:
    """The matcher of a text. `InvalidInput` names `place`."""
    try:
        return compile_matcher(where)
    except ExpressionInvalid as invalid:
        raise InvalidInput(f"{place}: {invalid}") from None


async def matching_alarms(
    connection: Connection,
    matcher: AlarmMatcher,
    states: Sequence[str] = ("open",),
    owners: Sequence[str] | None = None,
    limit: int = _ALL,
) -> list[Row]:
    """The alarms that match, the most severe first; with `owners`, only of these patterns."""
    rows = await list_alarms(connection, states=states, owners=owners, limit=limit)
    found: list[Row] = []
    for first in range(0, len(rows), _AT_ONCE):
        found += [row for row in rows[first : first + _AT_ONCE] if matcher.matches(matched_alarm(row).fields)]
        await asyncio.sleep(0)
    return found
