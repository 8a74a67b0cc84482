"""The windows of a `maintenance` document. Pure: no I/O.

Guarantee: the start of a window is an occurrence of the recurrence, computed as for schedules (tz,
`dst_gap`, `dst_fold`). Its length is elapsed time. `next_window` never returns a window that has
ended: after an outage over whole windows, they are left out. A window in progress is returned, so a
document that is applied during its window takes effect at once.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from schemas.documents.recurrence_keys import RecurrenceDocument
from timers.recurrence import Recurrence
from tocsin.core.instant import MICROSECOND


def counts_from_creation(document: RecurrenceDocument) -> bool:
    """Whether the windows are counted from the instant at which the document is applied first.

    That instant itself begins no window, as it is no fire of a schedule.
    """
    return document.every is not None or (document.rrule is not None and document.dtstart is None)


class SilenceWindow(NamedTuple):
    starts_at: datetime
    ends_at: datetime


def next_window(
    recurrence: Recurrence, duration: timedelta, now: datetime, after: datetime | None = None
) -> SilenceWindow | None:
    """The first window that ends after `now`, and begins after `after`; None if there is none."""
    earliest = now - duration
    behind = earliest if after is None else max(earliest, after)
    starts_at = recurrence.next_after(behind)
    return None if starts_at is None else SilenceWindow(starts_at, starts_at + duration)


def next_windows(
    recurrence: Recurrence, duration: timedelta, now: datetime, count: int, after: datetime | None = None
) -> list[SilenceWindow]:
    windows: list[SilenceWindow] = []
    window = next_window(recurrence, duration, now, after)
    while window is not None and len(windows) < count:
        windows.append(window)
        window = next_window(recurrence, duration, window.ends_at - MICROSECOND, window.starts_at)
    return windows
