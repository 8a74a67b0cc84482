"""Schedule ticks: a due tick becomes an event, and its row moves to the next occurrence.

Guarantee: an occurrence that is done is never fired again: its tick moves on without an event (I1).
`extend_plan`, which is pure, puts every row that it considers into exactly one of processed, left
alone (its schedule is being edited) and failed (its recurrence or policy cannot be evaluated), in
the order of the rows.

Why columns of plain numbers and texts: a batch has up to thousands of ticks, and each statement
gets all of them as arrays. Equal ticks (same recurrence, policy and nominal time) are decided once.

On failure: a row whose own decision raises fails alone. After any other error the batch is rolled
back, and `term` isolates the row that caused it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from clock.kinds import FiringPlan, ScanBounds, remove_timers
from timers.catch_up import Decision, Missed, Policy, decide
from timers.identity import event_id_text, spread_of
from timers.recurrence import Occurrence, Recurrence, parse_identity, parse_spec
from tocsin.core.columns import numbers, plain_texts, texts
from tocsin.core.db import Connection, statement
from tocsin.core.instant import MICROSECOND, instant_of, instant_text, microseconds_of

# A batch stops growing at this many events, so that `catch_up: all` cannot create one giant
# transaction.
EVENTS_PER_BATCH = 5_000
# Or at this many missed times that were counted one by one, about 4 microseconds each, because the
# other kinds wait meanwhile. A week of a cron by the minute is 10,000, so a thousand of those would
# take most of a minute.
COUNTED_PER_BATCH = 10_000
# Or at this many bytes of large payloads, which Postgres copies while it holds the lock of the log.
BYTES_PER_BATCH = 16_000_000
# Ticks that are decided at a time.
_CHUNK = 250
_NO_SPREAD = timedelta(0)
_DAY = timedelta(days=1)


class TickRow(NamedTuple):
    """One row of clock/lock_due_ticks; `ref` is the id of the schedule."""

    ctid: str
    ref: str
    fire_at: datetime
    nominal_at: datetime
    generation: int
    recurrence: str | None
    """None if the schedule is at another generation: an edit of it is committing."""
    policy: str
    owner: str
    name: str
    done_until: datetime | None
    """Set if an occurrence at or after this instant is done."""
    done_identity: str | None
    """The wall time of that occurrence, if it is identified by one."""
    identity: str | None
    """The identity of this occurrence, if it was stored when the tick was armed."""
    payload_bytes: int
    """The size of a large payload, 0 for the others."""

    @property
    def key(self) -> str:
        return ""

    @property
    def held(self) -> bool:
        return False


class TickOutcome(NamedTuple):
    """A decision in the form in which it is written, for each row that shares it."""

    fires: tuple[tuple[str, int, int], ...]
    """(identity, nominal time, due time)"""
    missed: tuple[str, int, str] | None
    """(identity, nominal time, payload)"""
    next_at: int | None
    next_fire_at: int | None
    next_identity: str | None
    done_until: int | None
    """None if this decision does nothing but move the tick."""
    done_identity: str | None
    """Set if the done occurrence is identified by its wall time."""
    end_status: str
    counted: int
    """Missed times that were counted one by one."""


@dataclass(slots=True)
class TickPlan(FiringPlan):
    """Columns for the statements that write the batch."""

    rearm: tuple[list[str], list[int], list[int], list[str], list[int | None], list[str | None]] = field(
        default_factory=lambda: ([], [], [], [], [], [])
    )
    end: tuple[list[str], list[str], list[str], list[int | None], list[str | None]] = field(
        default_factory=lambda: ([], [], [], [], [])
    )
    events: tuple[list[str], list[str], list[int], list[int | None], list[str | None]] = field(
        default_factory=lambda: ([], [], [], [], [])
    )
    counted: int = 0
    """Missed times that were counted one by one."""

    bytes: int = 0
    """Bytes of the large payloads of all events."""

    @property
    def is_full(self) -> bool:
        return (
            len(self.events[0]) >= EVENTS_PER_BATCH
            or self.counted >= COUNTED_PER_BATCH
            or self.bytes >= BYTES_PER_BATCH
        )

    @property
    def first_rearmed_at(self) -> datetime | None:
        return instant_of(min(self.rearm[1])) if self.rearm[1] else None

    @property
    def missed(self) -> int:
        return len(self.events[0]) - self.fires

    @property
    def due_times_s(self) -> list[float]:
        return [due_at / 1_000_000 for due_at in self.events[3] if due_at is not None]

    def rearm_columns(self, begin: int) -> dict[str, str]:
        """The columns of the rearmed ticks from index `begin` on."""
        ctids, next_fire_at, next_at, identities, done_until, done_identities = self.rearm
        return {
            "ctids": plain_texts(ctids[begin:]),
            "next_fire_at": numbers(next_fire_at[begin:]),
            "next_at": numbers(next_at[begin:]),
            "identities": plain_texts(identities[begin:]),
            "done_until": numbers(done_until[begin:]),
            "done_identities": texts(done_identities[begin:]),
        }

    def end_columns(self) -> dict[str, str]:
        _, ids, statuses, done_until, done_identities = self.end
        return {
            "ids": plain_texts(ids),
            "statuses": plain_texts(statuses),
            "done_until": numbers(done_until),
            "done_identities": texts(done_identities),
        }

    def event_columns(self) -> dict[str, str]:
        ids, schedules, ts, fire_at, missed = self.events
        return {
            "ids": plain_texts(ids),
            "schedules": plain_texts(schedules),
            "ts": numbers(ts),
            "fire_at": numbers(fire_at),
            "missed": texts(missed),
        }


class ScheduleTicks:
    """The kind `schedule-tick`: appends an event and arms the next tick, or ends the schedule."""

    kind = "schedule-tick"

    async def lock(self, connection: Connection, bounds: ScanBounds) -> list[TickRow]:
        cursor = await connection.execute(statement("clock/lock_due_ticks"), bounds, binary=True)
        return [TickRow(*row) for row in await cursor.fetchall()]

    async def plan(self, connection: Connection, rows: Sequence[TickRow], now: datetime) -> TickPlan:
        """Decide chunk by chunk: while Postgres moves the ticks of one, the next one is decided."""
        plan = TickPlan()
        for begin in range(0, len(rows), _CHUNK):
            already_moved = len(plan.rearm[0])
            extend_plan(plan, rows[begin : begin + _CHUNK], now)
            if len(plan.rearm[0]) > already_moved:
                await connection.execute(statement("clock/rearm_ticks"), plan.rearm_columns(already_moved))
        await remove_timers(connection, plan.end[0])
        return plan

    async def write(self, connection: Connection, plan: TickPlan, now: datetime, epoch: int) -> None:
        if plan.end[0]:
            await connection.execute(statement("clock/end_schedules"), {**plan.end_columns(), "now": now})
        await connection.execute(
            statement("clock/append_tick_events"), {**plan.event_columns(), "epoch": epoch}
        )


def extend_plan(plan: TickPlan, rows: Sequence[TickRow], now: datetime) -> None:
    """Add rows to a plan until it is full."""
    decided: dict[tuple[object, ...], TickOutcome] = {}
    for row in rows:
        if plan.is_full:
            break
        plan.considered += 1
        if row.recurrence is None:
            continue
        try:
            policy = _policy(row.policy)
            spread = spread_of(row.owner, row.name, policy.spread) if policy.spread else _NO_SPREAD
            key = (
                row.recurrence,
                row.policy,
                row.nominal_at,
                row.done_until,
                row.done_identity,
                row.identity,
                spread,
            )
            outcome = decided.get(key)
            if outcome is None:
                outcome = decided[key] = _outcome(row, row.recurrence, policy, spread, now)
                plan.counted += outcome.counted
        except Exception as error:  # any error belongs to this row alone
            plan.failed.append((row, f"{type(error).__name__}: {error}"))
            continue
        _add(plan, row, outcome)


def _recurrence(text: str) -> Recurrence:
    # A single time is needed once: in the cache it would displace recurrences that come again.
    return parse_spec(json.loads(text)) if text.startswith('{"at"') else _recurring(text)


@lru_cache(maxsize=131_072)
def _recurring(text: str) -> Recurrence:
    return parse_spec(json.loads(text))


@lru_cache(maxsize=1_024)
def _policy(text: str) -> Policy:
    """Parse the policy column of clock/lock_due_ticks.

    Empty for the defaults, else its fields in microseconds.
    """
    if not text:
        return Policy()
    catch_up, max_catch_up, spread, window, grace = text.split("|")
    return Policy(
        catch_up,
        timedelta(microseconds=int(window)) if window else None,
        timedelta(microseconds=int(grace)) if grace else None,
        int(max_catch_up),
        timedelta(microseconds=int(spread)),
    )


def _outcome(row: TickRow, text: str, policy: Policy, spread: timedelta, now: datetime) -> TickOutcome:
    recurrence = _recurrence(text)
    # The decision needs the spread of this schedule.
    own_policy = policy if spread == policy.spread else replace(policy, spread=spread)
    decision = _decide(row, recurrence, own_policy, now)
    spread_us = spread // MICROSECOND
    following = decision.following
    next_at = None if following is None else microseconds_of(following.at)
    if isinstance(decision, _Move):
        return TickOutcome(
            fires=(),
            missed=None,
            next_at=next_at,
            next_fire_at=None if next_at is None else next_at + spread_us,
            next_identity=None if following is None else recurrence.identity(following),
            done_until=None,
            done_identity=None,
            end_status="fired" if "at" in recurrence.spec and row.done_until is not None else "ended",
            counted=0,
        )
    fires = []
    for occurrence in decision.fires:
        nominal_at = microseconds_of(occurrence.at)
        fires.append((_identity(row, recurrence, occurrence), nominal_at, nominal_at + spread_us))
    return TickOutcome(
        fires=tuple(fires),
        missed=None if decision.missed is None else _missed(row, recurrence, decision.missed),
        next_at=next_at,
        next_fire_at=None if next_at is None else next_at + spread_us,
        next_identity=None if following is None else recurrence.identity(following),
        done_until=microseconds_of(decision.done.at),
        done_identity=_identity(row, recurrence, decision.done) if recurrence.is_fixed_time else None,
        end_status=_end_status(recurrence, decision),
        counted=0 if decision.missed is None or recurrence.is_divided else decision.missed.count,
    )


class _Move(NamedTuple):
    """The tick has nothing to fire and moves to `following`."""

    following: Occurrence | None


def _decide(row: TickRow, recurrence: Recurrence, policy: Policy, now: datetime) -> Decision | _Move:
    """Decide about a tick by the present tz data, under which it may lie elsewhere.

    A tick that was armed by other tz data may become due before `timers.tz_update` has moved it.
    """
    if row.done_until is not None:
        done = parse_identity(row.done_identity)
        instant = row.done_until if done is None else row.nominal_at - MICROSECOND
        following = recurrence.occurrence_behind(instant, done)
        if following is None or following.at != row.nominal_at:
            return _Move(following)
    identity = row.identity
    if identity is None or identity[-2:-1] != "/" or not recurrence.is_fixed_time:
        # Only the instant of its own occurrence is needed.
        armed = None if row.identity is None else Occurrence(row.nominal_at, None, 0, None)
        return decide(recurrence, policy, row.nominal_at, now, armed)
    own = recurrence.occurrence_named(identity)
    if own is not None and own.at == row.nominal_at:
        # Without its wall time: its identity is stored, and computing it again costs a microsecond.
        return decide(recurrence, policy, row.nominal_at, now, Occurrence(row.nominal_at, None, 0, None))
    if own is None:
        # The clocks skip it. Those behind it may lie earlier than this tick did.
        return _Move(recurrence.occurrence_behind(row.nominal_at - _DAY, parse_identity(identity)))
    return _Move(own) if own.at > now else decide(recurrence, policy, own.at, now, own)


def _identity(row: TickRow, recurrence: Recurrence, occurrence: Occurrence) -> str:
    """The identity of an occurrence: the stored one, unless it is a wall time.

    After new tz data, the instant of the tick may be another wall time.
    """
    stored = row.identity if occurrence.wall is None and occurrence.at == row.nominal_at else None
    return recurrence.identity(occurrence) if stored is None else stored


def _end_status(recurrence: Recurrence, decision: Decision) -> str:
    if decision.following is not None:
        return "active"
    # A one-shot that was missed did not fire. Any other recurrence without a next time has ended.
    return "fired" if "at" in recurrence.spec and decision.missed is None else "ended"


def _missed(row: TickRow, recurrence: Recurrence, missed: Missed) -> tuple[str, int, str]:
    payload = {
        "count": missed.count,
        "at_least": missed.at_least,
        "first": instant_text(missed.first.at),
        "last": instant_text(missed.last.at),
        "reason": missed.reason,
    }
    identity = f"missed/{_identity(row, recurrence, missed.first)}"
    return identity, microseconds_of(missed.last.at), json.dumps(payload)


def _add(plan: TickPlan, row: TickRow, outcome: TickOutcome) -> None:
    plan.processed += 1
    ids, schedules, ts, fire_at, missed = plan.events
    if outcome.missed is not None:
        identity, last_at, payload = outcome.missed
        ids.append(event_id_text(row.ref, row.generation, identity))
        schedules.append(row.ref)
        ts.append(last_at)
        fire_at.append(None)
        missed.append(payload)
    for identity, nominal_at, due_at in outcome.fires:
        ids.append(event_id_text(row.ref, row.generation, identity))
        schedules.append(row.ref)
        ts.append(nominal_at)
        fire_at.append(due_at)
        missed.append(None)
    plan.fires += len(outcome.fires)
    plan.bytes += len(outcome.fires) * row.payload_bytes
    if outcome.next_at is None or outcome.next_fire_at is None or outcome.next_identity is None:
        for column, value in zip(plan.end[:3], (row.ctid, row.ref, outcome.end_status), strict=True):
            column.append(value)
        plan.end[3].append(outcome.done_until)
        plan.end[4].append(outcome.done_identity)
        return
    ctids, next_fire_at, next_at, identities, done_until, done_identities = plan.rearm
    ctids.append(row.ctid)
    next_fire_at.append(outcome.next_fire_at)
    next_at.append(outcome.next_at)
    identities.append(outcome.next_identity)
    done_until.append(outcome.done_until)
    done_identities.append(outcome.done_identity)
