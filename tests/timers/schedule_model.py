"""A model of schedules in plain arithmetic, for the state machine: it shares no code with the product.

A recurrence is a start and a step, a decision is a list that is cut in two, and a promise is what one generation has to
account for.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Rhythm:
    """A recurrence as the model sees it; without a step there is one occurrence."""

    start: datetime
    step: timedelta | None = None
    end: datetime | None = None

    def after(self, instant: datetime) -> datetime | None:
        found = self.start
        if instant >= self.start:
            if self.step is None:
                return None
            found += ((instant - self.start) // self.step + 1) * self.step
        return None if self.end is not None and found > self.end else found

    def between(self, first: datetime, last: datetime) -> list[datetime]:
        """Those in [first, last]; `first` is one of them."""
        found: list[datetime] = []
        one: datetime | None = first
        while one is not None and one <= last:
            found.append(one)
            one = self.after(one)
        return found


@dataclass(frozen=True)
class Policy:
    catch_up: str = "latest"
    window: timedelta | None = None
    grace: timedelta | None = None
    max_catch_up: int = 100


@dataclass(frozen=True)
class Wanted:
    """A schedule to put. `shape` names the recurrence, `at` is the instant that some shapes need."""

    shape: str
    at: datetime
    policy: Policy
    tag: int

    def arguments(self) -> dict[str, Any]:
        if self.shape == "once":
            return {"at": self.at.isoformat()}
        if self.shape == "ending":
            return {"every": "20s", "ends_at": self.at}
        kind, _, text = self.shape.partition(" ")
        return {kind: text}

    def rhythm(self, now: datetime) -> Rhythm:
        midnight = T0.replace(hour=0)
        # An interval counts from the whole second in which it was put.
        now = now.replace(microsecond=0)
        return {
            "once": Rhythm(self.at),
            "ending": Rhythm(now, 20 * SECOND, self.at),
            "every 10s": Rhythm(now, 10 * SECOND),
            "every 7m": Rhythm(now, 7 * MINUTE),
            "cron */5 * * * *": Rhythm(midnight, 5 * MINUTE),
            "cron 30 * * * *": Rhythm(midnight + 30 * MINUTE, 60 * MINUTE),
        }[self.shape]

    def same_recurrence(self, other: Wanted) -> bool:
        needs_at = self.shape in ("once", "ending")
        return self.shape == other.shape and (not needs_at or self.at == other.at)


@dataclass(frozen=True)
class Record:
    """A fire has one time, a missed record a range and a count."""

    kind: str
    first: datetime
    last: datetime
    count: int = 1


@dataclass
class Promise:
    """The occurrences that one generation has to account for: after `after`, up to `done`."""

    rhythm: Rhythm
    after: datetime
    done: datetime | None = None

    def settled(self) -> list[datetime]:
        first = self.rhythm.after(self.after)
        if first is None or self.done is None or self.done < first:
            return []
        return self.rhythm.between(first, self.done)


@dataclass
class Modelled:
    wanted: Wanted
    rhythm: Rhythm
    status: str
    generation: int
    next_at: datetime | None
    done: datetime | None = None
    promises: list[Promise] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)

    def due(self, now: datetime) -> bool:
        return self.next_at is not None and self.next_at <= now

    def settle(self, now: datetime) -> None:
        """One turn of a due tick."""
        own = self.next_at
        assert own is not None
        policy, following = self.wanted.policy, self.rhythm.after(own)
        grace = policy.grace
        if grace is None:
            grace = MINUTE if following is None else min(MINUTE, (following - own) / 2)
        fires, missed = [own], []
        if now - own > grace:
            due = self.rhythm.between(own, now)
            fires = [one for one in due if policy.window is None or one >= now - policy.window]
            kept = {"none": 0, "latest": 1, "all": policy.max_catch_up}[policy.catch_up]
            fires = fires[max(0, len(fires) - kept) :] if kept else []
            missed = [one for one in due if one not in fires]
        if missed:
            self.records.append(Record("missed", missed[0], missed[-1], len(missed)))
        self.records += [Record("fired", one, one) for one in fires]
        self.done = self.promises[-1].done = max(fires + missed)
        self.next_at = self.rhythm.after(self.done)
        if self.next_at is None:
            self.status = "fired" if self.wanted.shape == "once" and not missed else "ended"

    def change(self, wanted: Wanted, rhythm: Rhythm, status: str, now: datetime) -> bool:
        """A new generation; false if it is refused because it would never fire again."""
        next_at = None
        after = now if self.done is None else max(now, self.done)
        if status == "active":
            next_at = rhythm.after(after)
            if next_at is None:
                return False
            self.promises.append(Promise(rhythm, after))
        self.wanted, self.rhythm, self.status, self.next_at = wanted, rhythm, status, next_at
        self.generation += 1
        return True


def as_record(event: dict[str, Any]) -> Record:
    if event["type"] == "schedule-fired":
        return Record("fired", event["ts"], event["ts"])
    assert event["type"] == "schedule-missed"
    first, last = (datetime.fromisoformat(event["payload"][key]) for key in ("first", "last"))
    assert (event["ts"], event["payload"]["at_least"]) == (last, False)
    return Record("missed", first, last, event["payload"]["count"])


def assert_each_once(promises: list[Promise], records: list[Record]) -> None:
    """From the records alone: no occurrence is in two of them, none is in none, and none is made up."""
    settled = Counter(one for promise in promises for one in promise.settled())
    ends = Counter(one for one in settled for record in records if record.first <= one <= record.last)
    assert settled == ends
    assert sum(record.count for record in records) == settled.total()
