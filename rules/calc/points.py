"""Reads the numbers of series for a window, one vector per series and range.

Guarantee: the vectors are those that `rules.calc.memory` makes of the same datapoints. SQL selects,
sorts and packs the numbers, and calculates nothing: what a float is worth is decided in one place.
Memory holds some hundred series at a time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from struct import unpack
from typing import Any, NamedTuple

from rules.calc.functions import Vector
from rules.calc.memory import CalcMemory, RangeOfSeries
from rules.calc.rule import CompiledInput, InputRange
from schemas.values.key_pattern import regex_of
from tocsin.core.db import Connection, statement
from tocsin.core.instant import MICROSECOND, instant_of, microseconds_of

_SINCE_1970_US = 946_684_800_000_000
"""The zero of Postgres' instants, 2000-01-01."""
_SERIES_AT_ONCE = 200


class SeriesInRange(NamedTuple):
    owner: str
    key: str
    found: RangeOfSeries | None
    """None if all datapoints were late."""
    late: int


async def read_points(
    connection: Connection, inputs: Sequence[CompiledInput], bounds: InputRange, end: int
) -> AsyncIterator[SeriesInRange]:
    """The series of inputs that share a range, of a window that ends at `end`."""
    begin, last = (instant_of(instant) for instant in bounds.bounds(end))
    keys = sorted({given.key for given in inputs})
    parameters = {
        "begin": begin,
        "end": last,
        "late_after": bounds.late_after * MICROSECOND,
        "keys": [key for key in keys if "*" not in key],
        "patterns": [regex_of(key) for key in keys if "*" in key],
    }
    async for row in _read(connection, statement("rules.calc/read_points"), parameters):
        yield _series(row)


async def read_results(
    connection: Connection, keys: Iterable[str], range: tuple[int, int], into: CalcMemory
) -> None:
    """Add the stored results of calc_rules to a memory."""
    begin, end = (instant_of(instant) for instant in range)
    parameters = {"begin": begin, "end": end, "keys": sorted(keys)}
    async for owner, key, ts, value, labels in _read(
        connection, statement("rules.calc/read_results"), parameters
    ):
        at = microseconds_of(ts)
        into.buffer(owner, key).add(at, at, value, labels)


async def _read(
    connection: Connection, query: bytes, parameters: dict[str, Any]
) -> AsyncIterator[Sequence[Any]]:
    async with connection.cursor(name="points", binary=True) as cursor:
        await cursor.execute(query, parameters)
        while rows := await cursor.fetchmany(_SERIES_AT_ONCE):
            for row in rows:
                yield row


def _series(row: Sequence[Any]) -> SeriesInRange:
    owner, key, ts, values, labels, last_arrival, late = row
    if values is None:
        return SeriesInRange(owner, key, None, late)
    count = len(values) // 8
    times = [at + _SINCE_1970_US for at in unpack(f">{count}q", ts)]
    vector = Vector(times, unpack(f">{count}d", values), microseconds_of(last_arrival))
    return SeriesInRange(owner, key, RangeOfSeries(vector, labels), late)
