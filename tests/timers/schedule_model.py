"""A model of schedules in plain arithmetic, for the state machine: it shares no code with the product.

A recurrence is a start and a step. A decision cuts a list of occurrences in two: missed and fired.
A promise is the set of occurrences that one generation has to record.
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
        """The occurrences in [first, last]; `first` is one of them."""
        occurrences: list[datetime] = []
        occurrence: datetime | None = first
        while occurrence is not None and occurrence <= last:
            occurrences.append(occurrence)
            occurrence = self.after(occurrence)
        return occurrences


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
    """The occurrences that one generation has to record: after `after`, up to `done`."""

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
        """Fire a due tick once."""
        own = self.next_at
        assert own is not None
        policy, following = self.wanted.policy, self.rhythm.after(own)
        grace = policy.grace
        if grace is None:
            grace = MINUTE if following is None else min(MINUTE, (following - own) / 2)
        fires, missed = [own], []
        if now - own > grace:
            due = self.rhythm.between(own, now)
            fires = [at for at in due if policy.window is None or at >= now - policy.window]
            most = {"none": 0, "latest": 1, "all": policy.max_catch_up}[policy.catch_up]
            fires = fires[max(0, len(fires) - most) :] if most else []
            missed = [at for at in due if at not in fires]
        if missed:
            self.records.append(Record("missed", missed[0], missed[-1], len(missed)))
        self.records += [Record("fired", at, at) for at in fires]
        self.done = self.promises[-1].done = max(fires + missed)
        self.next_at = self.rhythm.after(self.done)
        if self.next_at is None:
            self.status = "fired" if self.wanted.shape == "once" and not missed else "ended"

    def change(self, wanted: Wanted, rhythm: Rhythm, status: str, now: datetime) -> bool:
        """Begin a new generation; false if it is refused because it would never fire again."""
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
    """Check that each occurrence is in exactly one record, and that no record has another one."""
    settled = Counter(at for promise in promises for at in promise.settled())
    ends = Counter(at for at in settled for record in records if record.first <= at <= record.last)
    assert settled == ends
    assert sum(record.count for record in records) == settled.total()
