"""Where `now` comes from: the database's clock, carried between two readings by a local steady one.

Guarantee: a host whose wall clock is wrong, steps or jumps changes nothing here, because it is never read.
`DatabaseTime` keeps the offset between Postgres and CLOCK_BOOTTIME (which goes on while a machine is
suspended) and refreshes it with every look at the working set. A jump of the database's clock is
followed at once and said.
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
    """Seconds that never go back and that count while the machine sleeps."""
    return time.clock_gettime(_CLOCK)


def wall_now() -> datetime:
    """The host's own clock, for command lines that have no database and for a figure; nothing that fires uses it."""
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
        """Take a reading; returns how far the database's clock jumped since the last one (0 if it did not).

        A reading happened somewhere between asking and being answered: a difference that the spans of the two
        readings explain is not a jump. Counting from the answer makes `now` late by at most the span, never early.
        """
        offset = database_now - (EPOCH + timedelta(seconds=answered_s))
        span = timedelta(seconds=answered_s - asked_s)
        jumped = timedelta(0)
        if self._offset is not None:
            difference = offset - self._offset
            if abs(difference) > _JUMP + span + self._span:
                jumped = difference
                self.jumps += 1
                _log.warning("the database's clock jumped", by_s=difference.total_seconds())
        self._offset = offset
        self._span = span
        return jumped

    def now(self) -> datetime:
        if self._offset is None:
            raise RuntimeError("no reading of the database's clock yet")
        return EPOCH + timedelta(seconds=steady_s()) + self._offset
