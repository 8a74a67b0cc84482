"""Schedules under every order of acts, outages, crashes and takeovers: each occurrence ends exactly once (I1).

A model in plain arithmetic says after every step what the record log and the schedules must hold. It shares no
code with the product: a recurrence is a start and a step, a decision is a list that is cut in two.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import psycopg
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from clock.term import Term, begin_term
from tests.clock.beats import drain
from tests.sql import all_rows
from tests.waiting import eventually
from timers.schedules import (
    Act,
    Put,
    ScheduleSpec,
    cancel_schedule,
    list_schedules,
    pause_schedule,
    put_schedule,
    resume_schedule,
)
from tocsin.core.db import Connection, connect
from tocsin.core.errors import Deposed, Refused
from tocsin.core.settings import Settings

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
EXAMPLES = 24
STEPS = 25
Result = TypeVar("Result")


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
    """What somebody puts; `shape` names the recurrence, `at` is the instant that some shapes need."""

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


class House:
    """What the examples share: one database, one event loop, and an owner for each example."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._runner = asyncio.Runner()
        self._owners = 0
        self.connection = self.run(self.open_session("machine"))

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self._runner.run(work)

    async def open_session(self, name: str) -> Connection:
        """Patient, so that a slow machine decides nothing."""
        connection = await connect(self._settings, name)
        await connection.execute("set lock_timeout = '60s'")
        await connection.execute("set idle_in_transaction_session_timeout = 0")
        return connection

    def new_owner(self) -> str:
        self._owners += 1
        return f"owner-{self._owners}"

    def close(self) -> None:
        self.run(self.connection.close())
        self._runner.close()


class CrashedError(Exception):
    """The process is gone, as far as the database can tell."""


class Leader:
    """A term on a session of its own, which can be lost at a named point."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._crash_at: str | None = None
        self._session = house.run(house.open_session("leader"))
        self.term: Term = house.run(begin_term(self._session, "machine", hook=self._hook))

    async def _hook(self, point: str) -> None:
        if point == self._crash_at:
            await self._session.close()
            raise CrashedError

    def crash(self, point: str, now: datetime) -> bool:
        """Lose the session at the point, or after the commit; whether one batch was committed."""
        self._crash_at = point
        try:
            self._house.run(self.term.run_once(now))
            return True
        except (CrashedError, psycopg.Error):
            return False
        finally:
            self.end()

    def end(self) -> None:
        """Until the server knows, a lost session would still hold its rows and change what the next one sees."""
        pid = self._session.info.backend_pid if not self._session.closed else None
        self._house.run(self._session.close())
        del pid
        self._house.run(eventually(self._gone, "the server ended the leader's session"))

    async def _gone(self) -> bool:
        return not await all_rows(
            self._house.connection,
            "select pid from pg_stat_activity where datname = current_database() and application_name = %s",
            ("tocsin leader",),
        )
