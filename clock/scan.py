"""The scan of one timer kind: its mark, what it checks again, and how many rows it takes at a time.

Guarantee: no due row is overlooked for long, and no row is walked over twice without need. The mark
is the last (fire_at, ref, key) that was consumed, exact within one instant, so the scan never walks
over dead tuples of consumed rows. Because an arm may commit late and a row may be locked, the last
two seconds are scanned again every 200 ms. The backstop finds anything older.

Held rows lie before the mark like all rows that were passed over. The scan remembers the oldest and
returns to it after 50 ms, or later the more there are, at most 5 s. Passing over a held row takes
12 to 16 microseconds, so fifty thousand of them cost an eighth of a core, in statements short
enough for the other kinds. On its way from the oldest held row it also walks over the dead tuples
of all rows that were consumed since, which an open transaction keeps. If the last three passes all
took longer than their rows explain, it rests twenty times as long as the shortest of them did, so a
held row costs at most five percent of the time.

Why an object for each kind: ten thousand held watchdogs move their own mark and take their own
turns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from clock.kinds import FiringPlan, ScanBounds, Timer

BEGINNING = datetime(1, 1, 2, tzinfo=UTC)
_RESCAN_WINDOW = timedelta(seconds=2)
_RESCAN_EVERY = timedelta(milliseconds=200)
_RECHECK_HELD = timedelta(milliseconds=50)
_RECHECK_PER_ROW = timedelta(microseconds=100)
_LONGEST_RECHECK = timedelta(seconds=5)
_COST_PER_ROW = timedelta(microseconds=20)
_REST_PER_COST = 20
_LONGEST_REST = timedelta(minutes=1)
_PASSES_COMPARED = 3


class Position(NamedTuple):
    """A position in the order of due timers."""

    fire_at: datetime
    ref: str = ""
    key: str = ""


class Scan:
    def __init__(self, batch: int) -> None:
        self.mark = Position(BEGINNING)
        self.draining = False
        """Whether more rows were due than fitted in the last batch."""
        self._batch = batch
        self._limit = batch
        self._rescanned_at = BEGINNING
        # When the next row is due, if a poll has found that since the mark was last lowered.
        self._next_at: datetime | None = None
        # The oldest instant that `lower` got while a statement was running.
        self._lowered: datetime | None = None
        # The oldest held row, when to check it again, and how many held rows were passed over.
        self._held_from: datetime | None = None
        self._recheck_held_at: datetime | None = None
        self._held = 0
        # The time that this pass and the last ones spent on walking over rows that are gone.
        self._walked = timedelta(0)
        self._walks: deque[timedelta] = deque(maxlen=_PASSES_COMPARED)

    def bounds(self, now: datetime) -> ScanBounds:
        return {
            "mark": self.mark.fire_at,
            "mark_ref": self.mark.ref,
            "mark_key": self.mark.key,
            "now": now,
            "limit": self._limit,
        }

    @property
    def backstop_before(self) -> datetime:
        """The backstop scans before this instant. The scan itself returns to held rows."""
        mark_at = self.mark.fire_at
        return mark_at if self._held_from is None else min(mark_at, self._held_from)

    def may_be_due(self, now: datetime) -> bool:
        return self._next_at is None or self._next_at <= now

    def begin(self) -> None:
        """Begin a statement at the mark. A `lower` from now on also applies after the statement."""
        self._lowered = None

    def lower(self, fire_at: datetime) -> None:
        """Lower the mark: an arm committed late, or the clock went back."""
        self._lowered = fire_at if self._lowered is None else min(fire_at, self._lowered)
        if fire_at <= self.mark.fire_at:
            self.mark = Position(fire_at)
            self._next_at = None
        if self._held_from is not None and fire_at <= self._held_from:
            self._held_from = self._recheck_held_at = None
            self._held = 0
            self._walked = timedelta(0)

    def rescan_recent(self, now: datetime) -> None:
        """Scan the last two seconds and the held rows again.

        A clock that went back lowers the mark as well.

        Not while a backlog drains: that would walk over the dead tuples of the burst being drained.
        """
        if now < self.mark.fire_at:
            self.lower(now)
        went_back = now < self._rescanned_at
        if self.draining and not went_back:
            return
        if (
            self._held_from is not None
            and self._recheck_held_at is not None
            and (now >= self._recheck_held_at or went_back)
        ):
            self.lower(self._held_from)
        if now - self._rescanned_at >= _RESCAN_EVERY or went_back:
            self._rescanned_at = now
            self.lower(now - _RESCAN_WINDOW)

    def polled(self, now: datetime, next_at: datetime | None) -> None:
        """Note the result of a poll.

        Nothing is due before `now` and `next_at`, so the mark follows.
        """
        passed = now if next_at is None else min(now, next_at)
        if passed > self.mark.fire_at:
            self.mark = Position(passed)
        self._next_at = next_at or datetime.max.replace(tzinfo=UTC)
        if self.draining and self._next_at > now:
            self._end_pass(now)
        self._apply_lowered()

    def advance(
        self,
        rows: Sequence[Timer],
        taken: int,
        plan: FiringPlan,
        now: datetime,
        lock_time: timedelta = timedelta(0),
    ) -> None:
        """Move the mark after the rows that were walked over.

        `taken` of the rows were given to the plan. Finding and locking them took `lock_time`.
        """
        whole = plan.considered == taken
        self.draining = not whole or len(rows) == self._limit
        self._note_held(rows, taken)
        if self._held_from is not None:
            self._walked += max(lock_time - len(rows) * _COST_PER_ROW, timedelta(0))
        if not self.draining:
            self.mark = Position(now)
            self._end_pass(now)
        elif whole:
            self.mark = _position(rows[-1])
        else:
            self.mark = _position([row for row in rows if not row.held][plan.considered - 1])
        self._limit = min(self._batch, self._limit * 2)
        self._apply_lowered()
        rearmed_at = plan.first_rearmed_at
        if rearmed_at is not None and rearmed_at <= now:
            # A tick within its grace has moved to an occurrence that is due as well.
            self.lower(rearmed_at)
            self.draining = True

    def halve(self) -> bool:
        """After a failure, take half as many rows; False if the batch was one row."""
        if self._limit == 1:
            return False
        self._limit = max(1, self._limit // 2)
        self.retry()
        return True

    def retry(self) -> None:
        """Keep draining: the failed batch is still due."""
        self.draining = True

    def _note_held(self, rows: Sequence[Timer], taken: int) -> None:
        if taken < len(rows):
            self._held += len(rows) - taken
            if self._held_from is None:
                self._held_from = next(row.fire_at for row in rows if row.held)

    def _end_pass(self, now: datetime) -> None:
        """All due rows were walked over once. Sets when the held ones are checked again."""
        self.draining = False
        if not self._held:
            self._walks.clear()
        elif self._recheck_held_at is None:
            # Later scans of the last two seconds meet some of them again and do not move this time.
            wait = min(_LONGEST_RECHECK, max(_RECHECK_HELD, self._held * _RECHECK_PER_ROW))
            self._walks.append(self._walked)
            walked = min(self._walks) if len(self._walks) == _PASSES_COMPARED else timedelta(0)
            self._recheck_held_at = now + max(wait, min(_LONGEST_REST, _REST_PER_COST * walked))

    def _apply_lowered(self) -> None:
        """Apply what `lower` got while the statement ran."""
        if self._lowered is not None:
            self.lower(self._lowered)


def _position(row: Timer) -> Position:
    return Position(row.fire_at, row.ref, row.key)
