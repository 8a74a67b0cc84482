"""The source of `now`: the database's clock, carried between two reads by a local steady clock.

Guarantee: a host whose wall clock is wrong, steps or jumps changes nothing here, because it is
never read. `DatabaseTime` keeps the offset between Postgres and CLOCK_BOOTTIME (which continues
while a machine is suspended) and refreshes it with every poll of the timers. A jump of the
database's clock is followed at once and logged.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import structlog

from tocsin.core.instant import EPOCH

_log = structlog.get_logger()
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_JUMP = timedelta(milliseconds=250)


def steady_s() -> float:
    """Seconds that never go back and that count while the machine is suspended."""
    return time.clock_gettime(_CLOCK)


def wall_now() -> datetime:
    """The clock of the host, for commands without a database and for a metric.

    Nothing that fires uses it.
    """
    return datetime.now(UTC)


class DatabaseTime:
    def __init__(self) -> None:
        self._offset: timedelta | None = None
        self._span = timedelta(0)
        self.jumps = 0

    @property
    def known(self) -> bool:
        return self._offset is not None

    def observe(self, database_now: datetime, asked_s: float, answered_s: float) -> timedelta:
        """Take a read of the database's clock.

        Returns how far it jumped since the last one (0: not at all).

        The read happened somewhere between request and answer: a difference that the spans of the
        two reads explain is not a jump. Counting from the answer makes `now` late by at most the
        span, never early.
        """
        offset = database_now - (EPOCH + timedelta(seconds=answered_s))
        span = timedelta(seconds=answered_s - asked_s)
        jumped = timedelta(0)
        if self._offset is not None:
            difference = offset - self._offset
            if abs(difference) > _JUMP + span + self._span:
                jumped = difference
                self.jumps += 1
                _log.warning("database clock jumped", by_s=difference.total_seconds())
        self._offset = offset
        self._span = span
        return jumped

    def now(self) -> datetime:
        if self._offset is None:
            raise RuntimeError("the database's clock has not been read yet")
        return EPOCH + timedelta(seconds=steady_s()) + self._offset
