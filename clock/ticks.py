"""Schedule ticks: from locked rows to the arrays of one batch, by a pure plan.

Guarantee: `plan` puts every row into exactly one of settled, left (its schedule is being edited) and failed
(its own recurrence or policy cannot be evaluated), and what it settles is in the order of the rows. Equal
ticks (same recurrence, policy, nominal time) are decided once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from timers.catch_up import Decision, Missed, Policy, decide
from timers.identity import event_id, spread_of
from timers.recurrence import Recurrence, parse_spec

# A batch stops growing at this many events, so that `catch_up: all` cannot make one giant transaction.
EVENTS_PER_BATCH = 5_000


class TickRow(NamedTuple):
    """One row of clock/lock_due_ticks."""

    ctid: str
    ref: str
    fire_at: datetime
    nominal_at: datetime
    last_nominal_at: datetime | None
    schedule_id: UUID | None
    generation: int
    recurrence: str
    owner: str
    name: str
    spread: timedelta
    catch_up: str
    window: timedelta | None
    grace: timedelta | None
    max_catch_up: int


@dataclass
class TickPlan:
    """Column arrays for the statements that settle the batch."""

    rearm: dict[str, list[Any]] = field(default_factory=lambda: _columns("ctids next_fire_at next_at done_until"))
    remove: list[str] = field(default_factory=list)
    end: dict[str, list[Any]] = field(default_factory=lambda: _columns("ids statuses done_until"))
    events: dict[str, list[Any]] = field(
        default_factory=lambda: _columns("ids schedules ts fire_at origins types payloads")
    )
    failed: list[tuple[str, str]] = field(default_factory=list)
    settled: int = 0
    considered: int = 0

    @property
    def fires(self) -> int:
        return self.events["origins"].count("scheduled")


def plan(rows: Sequence[TickRow], now: datetime) -> TickPlan:
    result = TickPlan()
    decided: dict[tuple[Any, ...], tuple[Recurrence, Decision]] = {}
    for row in rows:
        if len(result.events["ids"]) >= EVENTS_PER_BATCH:
            break
        result.considered += 1
        if row.schedule_id is None:
            continue
        try:
            spread = spread_of(row.owner, row.name, row.spread)
            policy_key = (spread, row.catch_up, row.window, row.grace, row.max_catch_up)
            key = (row.recurrence, row.nominal_at, policy_key)
            known = decided.get(key)
            if known is None:
                known = decided[key] = _decide(row, spread, now)
        except Exception as error:  # whatever it is, it belongs to this row alone
            result.failed.append((row.ref, f"{type(error).__name__}: {error}"))
            continue
        _settle(result, row, spread, *known)
    return result


def _decide(row: TickRow, spread: timedelta, now: datetime) -> tuple[Recurrence, Decision]:
    recurrence = parse_spec(json.loads(row.recurrence))
    policy = Policy(row.catch_up, row.window, row.grace, row.max_catch_up, spread)
    return recurrence, decide(recurrence, policy, row.nominal_at, now)


def _settle(
    result: TickPlan, row: TickRow, spread: timedelta, recurrence: Recurrence, decision: Decision
) -> None:
    assert row.schedule_id is not None
    result.settled += 1
    if decision.missed is not None:
        _add_missed(result, row, row.schedule_id, recurrence, decision.missed)
    for occurrence in decision.fires:
        identity = recurrence.identity(occurrence)
        _add_event(
            result,
            (
                event_id(row.schedule_id, row.generation, identity),
                row.schedule_id,
                occurrence.at,
                occurrence.at + spread,
                "scheduled",
                None,
                None,
            ),
        )
    if decision.following is None:
        result.remove.append(row.ctid)
        _append(
            result.end,
            (row.schedule_id, "fired" if "at" in recurrence.spec and decision.fires else "ended", decision.done_until),
        )
    else:
        following = decision.following.at
        _append(result.rearm, (row.ctid, following + spread, following, decision.done_until))


def _add_missed(
    result: TickPlan, row: TickRow, schedule_id: UUID, recurrence: Recurrence, missed: Missed
) -> None:
    first = recurrence.identity(missed.first)
    payload = {
        "count": missed.count,
        "at_least": missed.at_least,
        "first": missed.first.at.isoformat(),
        "last": missed.last.at.isoformat(),
        "reason": missed.reason,
    }
    _add_event(
        result,
        (
            event_id(schedule_id, row.generation, f"missed/{first}"),
            schedule_id,
            missed.last.at,
            None,
            "derived",
            "schedule-missed",
            json.dumps(payload),
        ),
    )


def _columns(names: str) -> dict[str, list[Any]]:
    return {name: [] for name in names.split()}


def _append(columns: dict[str, list[Any]], values: tuple[Any, ...]) -> None:
    for column, value in zip(columns.values(), values, strict=True):
        column.append(value)


def _add_event(result: TickPlan, values: tuple[Any, ...]) -> None:
    _append(result.events, values)
