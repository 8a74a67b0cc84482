"""A schedule and its tick in memory: decided by the code of the clock, stored as the SQL files do."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from clock.ticks import TickPlan, TickRow, extend_plan
from timers.recurrence import Recurrence, parse, parse_spec
from timers.schedule_times import Done, Row, done_of, next_occurrence
from timers.tz_update import ZonedTick, move_of
from tocsin.core.errors import Refused
from tocsin.core.instant import instant_of

# Each missed occurrence fires when the tick is due again, so that fires alone account for all.
_CATCH_ALL_UP = "all|10000|0||"


@dataclass
class Fire:
    id: str
    """The id of the event, without the generation: one occurrence has one id."""
    at: datetime
    """The nominal time under the tz data that fired it."""
    armed_after: datetime
    """The last edit or resume before the fire."""


@dataclass
class SimulatedTick:
    nominal_at: datetime
    identity: str
    done: Done
    parked: bool = False


@dataclass
class SimulatedSchedule:
    arguments: dict[str, Any]
    added_at: datetime
    spec: dict[str, Any] = field(init=False)
    generation: int = 0
    updated_at: datetime = field(init=False)
    done: Done = field(default=Done(None, None))
    tick: SimulatedTick | None = None
    fires: list[Fire] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.spec = parse(**self.arguments, anchor=self.added_at).spec
        self.edit(self.added_at)

    def recurrence(self) -> Recurrence:
        return parse_spec(self.spec)

    def edit(self, now: datetime) -> None:
        """An edit of another field, or a resume: arms the next occurrence."""
        row: Row = {"name": "s", "recurrence": self.spec}
        row["last_occurrence"], row["last_identity"] = self.newest_done()
        done = done_of(row, self.spec["tz"])
        self.generation += 1
        self.updated_at = now
        self.done = done
        try:
            following = next_occurrence(row, self.recurrence(), now, done)
        except Refused:  # a single wall time that is done
            self.tick = None
            return
        self.tick = SimulatedTick(following.at, self.recurrence().identity(following), done)

    def pause(self, now: datetime) -> None:
        self.done = self.newest_done()
        self.generation += 1
        self.updated_at = now
        self.tick = None

    def newest_done(self) -> Done:
        return self.tick.done if self.tick is not None and self.tick.done.until is not None else self.done

    def run_until(self, now: datetime) -> None:
        """Fire what is due, as a clock that is never late, except for a tick that is parked."""
        while self.tick is not None and not self.tick.parked and self.tick.nominal_at <= now:
            self._fire(self.tick, max(self.tick.nominal_at, self.updated_at))

    def fire_late(self, now: datetime) -> None:
        """Fire a tick that was parked."""
        if self.tick is not None:
            self.tick.parked = False
            self._fire(self.tick, now)

    def update_tz(self) -> None:
        tick = self.tick
        if tick is None:
            return
        text = json.dumps(self.spec)
        stored = (tick.nominal_at, *tick.done, self.updated_at, text, "", "s", timedelta(0), tick.identity)
        move = move_of(ZonedTick("ref", self.generation, *stored))
        if move is not None:
            tick.nominal_at, tick.identity = move.nominal_at, move.identity

    def _fire(self, tick: SimulatedTick, now: datetime) -> None:
        newest = self.newest_done()
        overtaken = newest.until is not None and tick.nominal_at <= newest.until
        row = TickRow(
            "(0,1)",
            "ref",
            tick.nominal_at,
            tick.nominal_at,
            1,
            json.dumps(self.spec),
            _CATCH_ALL_UP,
            "",
            "s",
            newest.until if overtaken else None,
            newest.identity if overtaken else None,
            tick.identity,
            0,
        )
        plan = TickPlan()
        extend_plan(plan, [row], now)
        assert not plan.failed, plan.failed
        ids, _, ts, _, missed = plan.events
        self.fires += [
            Fire(id, instant_of(nominal_at), self.updated_at) for id, nominal_at in zip(ids, ts, strict=True)
        ]
        assert missed == [None] * len(missed), "every occurrence is caught up"
        self._store(tick, plan)

    def _store(self, tick: SimulatedTick, plan: TickPlan) -> None:
        if plan.end[0]:
            done_until, done_identity = plan.end[3][0], plan.end[4][0]
            if done_until is not None:
                self.done = Done(instant_of(done_until), done_identity)
            self.tick = None
            return
        _, _, (next_at,), (identity,), (done_until,), (done_identity,) = plan.rearm
        tick.nominal_at, tick.identity = instant_of(next_at), identity
        if done_until is not None:
            tick.done = Done(instant_of(done_until), done_identity)
