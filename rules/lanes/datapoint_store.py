"""Stores the datapoints of a batch and updates the current values.

Guarantee: every datapoint is stored, late and out of order ones too. The current value of a series
is the one with the newest `ts` (of equal ones, the later arrival). Its time of arrival is that of
the latest datapoint, whatever the clock of the producer showed.

Why staged before the first lock: the server reads a COPY for as long as the client writes. A
process that is frozen in the middle would keep every lock that it holds, and no timeout of the
server ends that.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple
from weakref import WeakSet

from rules.engine.inputs import Arrival, Value
from rules.lanes.batch import Writes
from rules.lanes.series_quota import SeriesQuota
from rules.metrics import DATAPOINTS
from tocsin.core.db import Connection, fetch_all, statement

_prepared: WeakSet[Connection] = WeakSet()
_BACKSLASH = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})
_NULL = "\\N"
_NOT_NEWEST = f"{_NULL}\t{_NULL}\t{_NULL}\n"


class PlacedArrival(NamedTuple):
    """A datapoint and its position in its message."""

    position: int
    arrival: Arrival


async def prepare_staging(connection: Connection) -> None:
    """Create the staging table, once per session and outside of any transaction."""
    if connection not in _prepared:
        await connection.execute(statement("rules.lanes/create_staging"))
        _prepared.add(connection)


class DatapointWrites(Writes):
    def __init__(
        self,
        partition: int,
        datapoints: Sequence[PlacedArrival],
        rejected: int = 0,
        series: SeriesQuota | None = None,
    ) -> None:
        """`rejected`: the number of datapoints of the batch that become dead letters.

        `series` checks the owners that get new series.
        """
        self._series = series
        self._partition = partition
        self._stored, self._rejected = len(datapoints), rejected
        self._lines = staged_lines(datapoints)

    async def stage(self, connection: Connection) -> None:
        if not self._lines:
            return
        copying = statement("rules.lanes/stage_datapoints")
        async with connection.cursor() as cursor, cursor.copy(copying) as copy:
            await copy.write(self._lines)

    async def write_entities(self, connection: Connection) -> None:
        if not self._lines:
            return
        await connection.execute(statement("rules.lanes/store_datapoints"))
        parameters = {"partition": self._partition}
        rows = await fetch_all(connection, "rules.lanes/update_current_values", parameters)
        if rows and self._series is not None:
            await self._series.check_new(connection, [owner for (owner,) in rows])

    def committed(self) -> None:
        DATAPOINTS.add(self._stored, "stored")
        DATAPOINTS.add(self._rejected, "rejected")


def staged_lines(datapoints: Sequence[PlacedArrival]) -> bytes:
    """The batch in the text format of COPY, in order."""
    newest: dict[tuple[str, str], int] = {}
    first: dict[tuple[str, str], datetime] = {}
    last: dict[tuple[str, str], Arrival] = {}
    for number, (_, arrival) in enumerate(datapoints):
        series = (arrival.owner, arrival.key)
        best = newest.get(series)
        if best is None:
            newest[series] = number
            first[series] = arrival.at
        elif arrival.ts >= datapoints[best].arrival.ts:
            newest[series] = number
        last[series] = arrival
    lines: list[str] = []
    # The datapoints of a message mostly share one instant.
    shown_at, at_text = None, ""
    shown_ts, ts_text = None, ""
    for number, (position, arrival) in enumerate(datapoints):
        at, seq, owner, key, value, ts, labels, _ = arrival
        if at is not shown_at:
            shown_at, at_text = at, at.isoformat()
        if ts is not shown_ts:
            shown_ts, ts_text = ts, ts.isoformat()
        tail = _NOT_NEWEST
        series = (owner, key)
        if newest[series] == number:
            began_at, latest = first[series], last[series]
            began_text = at_text if began_at is at else began_at.isoformat()
            latest_text = at_text if latest.at is at else latest.at.isoformat()
            tail = f"{began_text}\t{latest_text}\t{latest.seq}\n"
        lines.append(
            f"{at_text}\t{seq}\t{position}\t{_text(owner)}\t{_text(key)}\t{ts_text}\t{_value(value)}\t"
            f"{_json(labels) if labels else _NULL}\t{tail}"
        )
    return "".join(lines).encode()


def _value(value: Value) -> str:
    if type(value) is float:
        text = repr(value)
        # A large float must be read back as a float: without a point it would be an integer of any
        # length.
        return text if "e+" not in text else f"{value:.1f}"
    return _json(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\\", "\\\\")


@lru_cache(maxsize=200_000)
def _text(text: str) -> str:
    return text.translate(_BACKSLASH)
