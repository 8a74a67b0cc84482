"""Storing the datapoints of a batch: staged by COPY, inserted, and the current values raised.

Guarantee: every datapoint is stored, late and out of order ones too. The current value of a series is the one with the
newest `ts` (of equal ones, the later arrival); its arrival is that of the latest, whatever the producer's clock said.

Why staged before the first lock: a COPY reads from us for as long as we write, and a process that is frozen in the
middle would keep every lock that it holds; no time-out of the server ends that.
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
from rules.metrics import DATAPOINTS
from tocsin.core.db import Connection, statement

_prepared: WeakSet[Connection] = WeakSet()
_BACKSLASH = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})
_NULL = "\\N"
_NOT_NEWEST = f"{_NULL}\t{_NULL}\t{_NULL}\n"


class Placed(NamedTuple):
    """A datapoint and its number in its message."""

    place: int
    arrival: Arrival


async def prepare_staging(connection: Connection) -> None:
    """Once per session, outside of a transaction that could be rolled back."""
    if connection not in _prepared:
        await connection.execute(statement("rules.lanes/create_staging"))
        _prepared.add(connection)


class StoreDatapoints(Writes):
    def __init__(self, partition: int, datapoints: Sequence[Placed], refused: int = 0) -> None:
        """`refused`: how many more there were, which are set aside."""
        self._partition = partition
        self._stored, self._refused = len(datapoints), refused
        self._lines = staged_lines(datapoints)

    async def stage(self, connection: Connection) -> None:
        if not self._lines:
            return
        copying = statement("rules.lanes/stage_datapoints")
        async with connection.cursor() as cursor, cursor.copy(copying) as copy:
            await copy.write(self._lines)

    async def entities(self, connection: Connection) -> None:
        if not self._lines:
            return
        await connection.execute(statement("rules.lanes/store_datapoints"))
        parameters = {"partition": self._partition}
        await connection.execute(statement("rules.lanes/update_current_values"), parameters)

    def committed(self) -> None:
        DATAPOINTS.add(self._stored, "stored")
        DATAPOINTS.add(self._refused, "set_aside")


def staged_lines(datapoints: Sequence[Placed]) -> bytes:
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
    # Most instants of a message are one.
    shown_at, at_text = None, ""
    shown_ts, ts_text = None, ""
    for number, (place, arrival) in enumerate(datapoints):
        at, seq, owner, key, value, ts, labels = arrival
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
            f"{at_text}\t{seq}\t{place}\t{_text(owner)}\t{_text(key)}\t{ts_text}\t{_value(value)}\t"
            f"{_json(labels) if labels else _NULL}\t{tail}"
        )
    return "".join(lines).encode()


def _value(value: Value) -> str:
    if type(value) is float:
        text = repr(value)
        # A large number must come back as what it was: without a point it would be an integer of any length.
        return text if "e+" not in text else f"{value:.1f}"
    return _json(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\\", "\\\\")


@lru_cache(maxsize=200_000)
def _text(text: str) -> str:
    return text.translate(_BACKSLASH)
