"""Schedules under every order of edits, outages, crashes and takeovers: each occurrence ends exactly once (I1).

The model says after every step what the record log and the schedules must hold. The database is real, time is
virtual, and the examples are the same in every run.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar

import psycopg
from hypothesis import HealthCheck, Phase
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
from tests.clock.clock_setup import drain
from tests.sql import all_rows
from tests.timers.schedule_model import (
    MINUTE,
    SECOND,
    T0,
    Modelled,
    Policy,
    Record,
    Wanted,
    as_record,
    assert_each_once,
)
from tests.wait import eventually
from timers.schedule_spec import ScheduleSpec
from timers.schedules import (
    PutResult,
    cancel_schedule,
    list_schedules,
    pause_schedule,
    put_schedule,
    resume_schedule,
)
from tocsin.core.audit import Actor
from tocsin.core.db import Connection, connect
from tocsin.core.errors import Deposed, Refused
from tocsin.core.settings import Settings

EXAMPLES = 24
STEPS = 25
Result = TypeVar("Result")


class Instance:
    """Shared by the examples: one database, one event loop, and an owner for each example."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._runner = asyncio.Runner()
        self._owners = 0
        self.connection = self.run(self.open_session("machine"))

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self._runner.run(work)

    async def open_session(self, name: str) -> Connection:
        """Open a session with long timeouts, so that a slow machine does not change the result."""
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

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._crash_at: str | None = None
        self._session = instance.run(instance.open_session("leader"))
        self._pid = self._session.info.backend_pid
        self.term: Term = instance.run(begin_term(self._session, "machine", hook=self._hook))

    async def _hook(self, point: str) -> None:
        if point == self._crash_at:
            await self._session.close()
            raise CrashedError

    def fires(self, now: datetime) -> None:
        self._instance.run(drain(self.term, now, most=1000))

    def is_refused(self, now: datetime) -> bool:
        """Try one batch as a leader that was superseded."""
        try:
            batch = self._instance.run(self.term.run_once(now))
        except (Deposed, psycopg.OperationalError):
            return True
        assert batch.timers == 0
        return False

    def crashes(self, point: str, now: datetime) -> bool:
        """Lose the session at the point; true if the batch was committed before."""
        self._crash_at = point
        try:
            self._instance.run(self.term.run_once(now))
        except (CrashedError, psycopg.Error):
            return False
        finally:
            self.end()
        return True

    def end(self) -> None:
        """Close the session, and wait for the server to end it.

        Until then it would hold its row locks, and the next scan would skip those rows.
        """
        self._instance.run(self._session.close())
        self._instance.run(eventually(self._gone, "the server ended the leader's session", within=60))

    async def _gone(self) -> bool:
        query = "select pid from pg_stat_activity where pid = %s"
        return not await all_rows(self._instance.connection, query, (self._pid,))


NAMES = st.sampled_from(["a", "b", "c"])
KNOWN = st.sampled_from(["a", "b"])
SHAPES = st.sampled_from(
    ["once", "ending", "every 10s", "every 10s", "every 7m", "cron */5 * * * *", "cron 30 * * * *"]
)
POLICIES = st.sampled_from(
    [
        Policy(),
        Policy(window=MINUTE),
        Policy(grace=5 * MINUTE),
        Policy("all", max_catch_up=3),
        Policy("all", window=2 * MINUTE, grace=timedelta(0)),
        Policy("none"),
    ]
)
HALF_SECONDS = st.integers(1, 120).map(lambda halves: halves * SECOND / 2)


class Schedules(RuleBasedStateMachine):
    def __init__(self, instance: Instance) -> None:
        super().__init__()
        self.instance = instance
        self.owner = instance.new_owner()
        self.now = T0
        self.model: dict[str, Modelled] = {}
        self.leader: Leader | None = None
        self.first_seq = 0

    @initialize(policy=POLICIES, shape=SHAPES)
    def begin(self, policy: Policy, shape: str) -> None:
        heads = self.instance.run(
            all_rows(self.instance.connection, "select coalesce(max(seq), 0) as head from tocsin.event")
        )
        self.first_seq = heads[0]["head"] + 1
        self.leader = Leader(self.instance)
        # Every example has schedules from its first step.
        self.put_wanted("a", Wanted("every 10s", self.now, policy, 0))
        self.put_wanted("b", Wanted(shape, self.now + 45 * SECOND, policy, 0))

    # Edits by an operator.

    @rule(name=NAMES, shape=SHAPES, policy=POLICIES, tag=st.integers(0, 1), seconds=st.integers(-20, 120))
    def put(self, name: str, shape: str, policy: Policy, tag: int, seconds: int) -> None:
        # A one-shot in the past is refused by the edit. An interval that ends before it begins cannot
        # be parsed, so it is not tried.
        seconds = max(seconds, 0) if shape == "ending" else seconds
        self.put_wanted(name, Wanted(shape, self.now + seconds * SECOND, policy, tag))

    @rule(name=KNOWN)
    def put_the_same_again(self, name: str) -> None:
        self.put_wanted(name, self.model[name].wanted)

    def put_wanted(self, name: str, wanted: Wanted) -> None:
        policy = wanted.policy
        spec = ScheduleSpec(
            name,
            wanted.arguments(),
            owner=self.owner,
            payload={"tag": wanted.tag},
            catch_up=policy.catch_up,
            window=policy.window,
            grace=policy.grace,
            max_catch_up=policy.max_catch_up,
        )
        self.edit(put_schedule(self.instance.connection, spec, self.actor), self.model_put(name, wanted))

    def model_put(self, name: str, wanted: Wanted) -> str | None:
        row = self.model.get(name)
        if row is None:
            row = Modelled(wanted, wanted.rhythm(self.now), "", 0, None)
            if not row.change(wanted, row.rhythm, "active", self.now):
                return None
            self.model[name] = row
            return "added"
        kept = wanted.same_recurrence(row.wanted)
        unchanged = kept and (wanted.policy, wanted.tag) == (row.wanted.policy, row.wanted.tag)
        if unchanged and row.status in ("active", "fired", "ended"):
            return "unchanged"
        rhythm = row.rhythm if kept else wanted.rhythm(self.now)
        return "changed" if row.change(wanted, rhythm, "active", self.now) else None

    @rule(name=NAMES)
    def pause(self, name: str) -> None:
        work = pause_schedule(self.instance.connection, self.owner, name, self.actor)
        self.edit(work, self.model_status(name, "paused", {"active"}, {"paused"}))

    @rule(name=NAMES)
    def resume(self, name: str) -> None:
        work = resume_schedule(self.instance.connection, self.owner, name, self.actor)
        self.edit(work, self.model_status(name, "active", {"paused"}, {"active"}))

    @rule(name=NAMES)
    def cancel(self, name: str) -> None:
        work = cancel_schedule(self.instance.connection, self.owner, name, self.actor)
        finished = {"fired", "ended", "cancelled"}
        self.edit(work, self.model_status(name, "cancelled", {"active", "paused"}, finished))

    def model_status(self, name: str, to: str, changed: set[str], unchanged: set[str]) -> str | None:
        row = self.model.get(name)
        if row is None or row.status not in changed | unchanged:
            return None
        if row.status in unchanged:
            return "unchanged"
        return "changed" if row.change(row.wanted, row.rhythm, to, self.now) else None

    def edit(self, work: Coroutine[Any, Any, PutResult], expected: str | None) -> None:
        """Run an edit. `expected` is its outcome, or None if it must be refused."""
        try:
            outcome: str | None = self.instance.run(work).outcome
        except Refused:
            outcome = None
        assert outcome == expected

    @property
    def actor(self) -> Actor:
        return Actor("tester", "machine", self.now)

    # Time passes; clocks fail and take over.

    @rule(by=HALF_SECONDS)
    def advance(self, by: timedelta) -> None:
        self.now += by
        self.fire()

    @rule(by=st.integers(1, 24).map(lambda fives: fives * 5 * MINUTE))
    def outage(self, by: timedelta) -> None:
        if self.leader is not None:
            self.leader.end()
        self.now += by
        self.leader = Leader(self.instance)
        self.fire()

    @precondition(lambda self: self.leader is not None)
    @rule(point=st.sampled_from(["locked", "committed"]), by=HALF_SECONDS)
    def crash(self, point: str, by: timedelta) -> None:
        self.crash_at(point, by)

    @precondition(lambda self: self.leader is not None)
    @rule(by=HALF_SECONDS)
    def crash_between_append_and_commit(self, by: timedelta) -> None:
        self.crash_at("appended", by)

    def crash_at(self, point: str, by: timedelta) -> None:
        assert self.leader is not None
        self.now += by
        due = self.due()
        committed = self.leader.crashes(point, self.now)
        self.leader = None
        # A batch without due timers locks and appends nothing, so it does not reach the point.
        assert committed == (point == "committed" or not due)
        if committed:
            for row in due:
                row.settle(self.now)

    @rule(ended=st.booleans(), by=HALF_SECONDS)
    def take_over(self, ended: bool, by: timedelta) -> None:
        """Begin a new term.

        The session of the old leader is ended. Otherwise, as with a pooler, only the epoch fences it.
        """
        self.now += by
        old = self.leader
        if not ended:
            self.instance.run(all_rows(self.instance.connection, FORGET_THE_HOLDER))
        self.leader = Leader(self.instance)
        if old is not None:
            assert old.is_refused(self.now) or not (self.due() or ended)
            old.end()
        self.fire()

    @precondition(lambda self: self.leader is not None)
    @rule(by=HALF_SECONDS, name=KNOWN, shape=SHAPES)
    def the_databases_clock_goes_back_before_an_edit(self, by: timedelta, name: str, shape: str) -> None:
        """The next occurrence of the edit may lie before one that is done, which must not fire again."""
        assert self.leader is not None
        self.now -= by
        # The service does this at every scan, fifty times a second.
        self.leader.term.rescan_recent(self.now)
        before = self.model[name].wanted
        self.put_wanted(name, Wanted(shape, self.now + 20 * SECOND, before.policy, 1 - before.tag))

    def fire(self) -> None:
        if self.leader is None:
            return
        self.leader.fires(self.now)
        while due := self.due():
            for row in due:
                row.settle(self.now)

    def due(self) -> list[Modelled]:
        return [row for row in self.model.values() if row.due(self.now)]

    # Invariants after every step.

    @invariant()
    def every_occurrence_ends_exactly_once(self) -> None:
        recorded_events = self.instance.run(all_rows(self.instance.connection, EVENTS, (self.first_seq,)))
        assert [event["seq"] for event in recorded_events] == [
            self.first_seq + n for n in range(len(recorded_events))
        ]
        assert len({event["id"] for event in recorded_events}) == len(recorded_events)
        recorded: dict[str, list[Record]] = defaultdict(list)
        for event in recorded_events:
            recorded[event["schedule"]].append(as_record(event))
        for name, row in self.model.items():
            assert_each_once(row.promises, recorded[name])
            assert recorded[name] == row.records
        assert set(recorded) <= set(self.model)

    @invariant()
    def every_schedule_has_the_state_of_its_model(self) -> None:
        rows = self.instance.run(list_schedules(self.instance.connection, owner=self.owner))
        states = {
            row["name"]: (row["status"], row["generation"], row["nominal_at"], row["last_occurrence"])
            for row in rows
        }
        assert states == {
            name: (row.status, row.generation, row.next_at, row.done) for name, row in self.model.items()
        }
        assert self.instance.run(all_rows(self.instance.connection, UNKNOWN)) == []

    def teardown(self) -> None:
        if self.leader is not None:
            self.leader.end()
        self.instance.run(all_rows(self.instance.connection, "delete from tocsin.timer returning ref"))


EVENTS = "select seq, id, type, schedule, ts, payload from tocsin.event where seq >= %s order by seq"
UNKNOWN = "select * from tocsin.timer where identity is null or identity_at is distinct from nominal_at"
FORGET_THE_HOLDER = "update tocsin.log_head set holder_pid = null returning epoch"


def test_every_occurrence_ends_exactly_once_in_any_sequence_of_steps(settings: Settings) -> None:
    instance = Instance(settings)

    class SchedulesOfInstance(Schedules):
        def __init__(self) -> None:
            super().__init__(instance)

    try:
        run_state_machine_as_test(
            SchedulesOfInstance,
            settings=hypothesis_settings(
                max_examples=EXAMPLES,
                stateful_step_count=STEPS,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=list(HealthCheck),
                # No shrinking: it takes too long on a real database, and every run has the same examples.
                phases=[Phase.generate],
            ),
        )
    finally:
        instance.close()
