"""Where the scan of one kind stands: its mark, what it looks at again, and how much it takes at once.

Guarantee: nothing that is due is overlooked for long, and nothing is walked over twice without need. The mark is the
last (fire_at, ref, key) that was consumed, exact within one instant, so the scan never walks over the corpses of
consumed rows. Because an arm may commit late or a row may be locked, the last two seconds are scanned again every
200 ms; the backstop finds anything older.

Rows that are held lie behind the mark like everything that was passed over. The scan remembers the oldest and returns
to it after 50 ms, or later the more there are, at most 5 s. Passing over a held row takes 12 to 16 microseconds, so
fifty thousand of them cost an eighth of a core, in statements short enough for the other kinds.

Why an object for each kind: ten thousand held watchdogs move their own mark and take their own turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from clock.kinds import Bounds, Plan, Timer

BEGINNING = datetime(1, 1, 2, tzinfo=UTC)
_TRAIL = timedelta(seconds=2)
_TRAIL_EVERY = timedelta(milliseconds=200)
_HOLD = timedelta(milliseconds=50)
_HOLD_PER_ROW = timedelta(microseconds=100)
_LONGEST_HOLD = timedelta(seconds=5)


class Position(NamedTuple):
    """A place in the order of due timers."""

    fire_at: datetime
    ref: str = ""
    key: str = ""


class Scan:
    def __init__(self, batch: int) -> None:
        self.mark = Position(BEGINNING)
        self.draining = False
        """More was due than one batch takes, when the last one ended."""
        self._batch = batch
        self._limit = batch
        self._trailed_at = BEGINNING
        # When the next one is due, if a look has said so since the mark was last lowered.
        self._next_at: datetime | None = None
        # The oldest instant that `lower` was told while a statement was under way.
        self._lowered: datetime | None = None
        # The oldest row that is held, when to look at it again, and how many were passed over on the way.
        self._held_from: datetime | None = None
        self._again_at: datetime | None = None
        self._held = 0

    def bounds(self, now: datetime) -> Bounds:
        return {
            "mark": self.mark.fire_at,
            "mark_ref": self.mark.ref,
            "mark_key": self.mark.key,
            "now": now,
            "limit": self._limit,
        }

    @property
    def watched_from(self) -> datetime:
        """The backstop looks before this: what is held is looked at anyway."""
        mark_at = self.mark.fire_at
        return mark_at if self._held_from is None else min(mark_at, self._held_from)

    def may_be_due(self, now: datetime) -> bool:
        return self._next_at is None or self._next_at <= now

    def begin(self) -> None:
        """A statement sets out from the mark; what `lower` is told from now on counts after it as well."""
        self._lowered = None

    def lower(self, fire_at: datetime) -> None:
        """Something older than the mark is due: an arm that committed late, or a clock that went back."""
        self._lowered = fire_at if self._lowered is None else min(fire_at, self._lowered)
        if fire_at <= self.mark.fire_at:
            self.mark = Position(fire_at)
            self._next_at = None
        if self._held_from is not None and fire_at <= self._held_from:
            self._held_from = self._again_at = None
            self._held = 0

    def trail(self, now: datetime) -> None:
        """Look again at the last two seconds and at what is held; a clock that went back lowers the mark as well.

        Not while a backlog drains: that would walk over the corpses of the burst being drained.
        """
        if now < self.mark.fire_at:
            self.lower(now)
        went_back = now < self._trailed_at
        if self.draining and not went_back:
            return
        if (
            self._held_from is not None
            and self._again_at is not None
            and (now >= self._again_at or went_back)
        ):
            self.lower(self._held_from)
        if now - self._trailed_at >= _TRAIL_EVERY or went_back:
            self._trailed_at = now
            self.lower(now - _TRAIL)

    def looked(self, now: datetime, next_at: datetime | None) -> None:
        """Nothing is due before either of them: the mark follows."""
        passed = now if next_at is None else min(now, next_at)
        if passed > self.mark.fire_at:
            self.mark = Position(passed)
        self._next_at = next_at or datetime.max.replace(tzinfo=UTC)
        if self.draining and self._next_at > now:
            self._end_pass(now)
        self._lower_again()

    def advance(self, rows: Sequence[Timer], taken: int, plan: Plan, now: datetime) -> None:
        """Move the mark behind what was walked over; `taken` of the rows were given to the plan."""
        whole = plan.considered == taken
        self.draining = not whole or len(rows) == self._limit
        self._note_held(rows, taken)
        if not self.draining:
            self.mark = Position(now)
            self._end_pass(now)
        elif whole:
            self.mark = _position(rows[-1])
        else:
            self.mark = _position([row for row in rows if not row.held][plan.considered - 1])
        self._limit = min(self._batch, self._limit * 2)
        self._lower_again()
        rearmed_at = plan.first_rearmed_at
        if rearmed_at is not None and rearmed_at <= now:
            # A tick within its grace moved to an occurrence that is due as well.
            self.lower(rearmed_at)
            self.draining = True

    def halve(self) -> bool:
        """After a failure: take half as many; false if it was one row alone."""
        if self._limit == 1:
            return False
        self._limit = max(1, self._limit // 2)
        self.retry()
        return True

    def retry(self) -> None:
        """The batch that failed is still due."""
        self.draining = True

    def _note_held(self, rows: Sequence[Timer], taken: int) -> None:
        if taken < len(rows):
            self._held += len(rows) - taken
            if self._held_from is None:
                self._held_from = next(row.fire_at for row in rows if row.held)

    def _end_pass(self, now: datetime) -> None:
        """Everything due was walked over once; what was held on the way has its time to be looked at again."""
        self.draining = False
        if self._held and self._again_at is None:
            # Later scans of the last two seconds meet some of them again, and change nothing about it.
            self._again_at = now + min(_LONGEST_HOLD, max(_HOLD, self._held * _HOLD_PER_ROW))

    def _lower_again(self) -> None:
        """What was found while a statement was under way counts, wherever that has moved the mark."""
        if self._lowered is not None:
            self.lower(self._lowered)


def _position(row: Timer) -> Position:
    return Position(row.fire_at, row.ref, row.key)
