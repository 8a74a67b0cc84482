"""A timer kind for the tests of the clock's loop, on the real table.

The payload of a row selects what happens: `held` must not fire yet, `bad` fails alone in the plan,
`worse` fails the whole plan. Any other row fires: its timer is deleted and an event of type `plain`
is appended, with the timer's ref as its rule and the key in its payload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from clock.kinds import FiringPlan, ScanBounds
from tests.sql import all_rows
from tocsin.core.db import Connection
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent

# `taken` repeats the conditions of `due`, because a row may have changed since `due` read it. A row
# that another transaction has locked counts as held.
LOCK = b"""
with due as materialized (
    select t.ctid as row_id, t.ref, t.key, t.fire_at, t.payload ? 'held' as held
    from tocsin.timer t
    where t.kind = %(kind)s
      and t.parked_at is null
      and (t.fire_at, t.ref, t.key) > (%(mark)s, %(mark_ref)s, %(mark_key)s)
      and t.fire_at <= %(now)s
    order by t.fire_at, t.ref, t.key
    limit %(limit)s
), taken as materialized (
    select t.ctid as row_id, t.generation, t.payload
    from due
    join tocsin.timer t on t.ctid = due.row_id
    where not due.held and t.parked_at is null and t.fire_at <= %(now)s and not t.payload ? 'held'
    for update of t skip locked
)
select row_id::text, due.ref, due.key, due.fire_at, taken.generation, taken.payload, taken.generation is null
from due left join taken using (row_id)
order by due.fire_at, due.ref, due.key
"""
REMOVE = b"delete from tocsin.timer where ctid = any(%s::tid[])"
ARM = b"""
insert into tocsin.timer (kind, ref, key, fire_at, nominal_at, payload)
select %(kind)s, %(ref)s, to_char(n, 'fm00000'), %(at)s, %(at)s,
       case when %(held)s then '{"held": true}'::jsonb else '{}' end
from generate_series(1, %(count)s::integer) n
"""


class PlainRow(NamedTuple):
    ctid: str
    ref: str
    key: str
    fire_at: datetime
    generation: int
    payload: dict[str, Any]
    held: bool

    @property
    def name(self) -> str:
        return self.ref


@dataclass(slots=True)
class PlainPlan(FiringPlan):
    fired: list[PlainRow] = field(default_factory=list)


class Plain:
    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.walked: list[int] = []
        """How many rows each statement walked over."""

    async def lock(self, connection: Connection, bounds: ScanBounds) -> list[PlainRow]:
        cursor = await connection.execute(LOCK, {**bounds, "kind": self.kind})
        rows = [PlainRow(*row) for row in await cursor.fetchall()]
        self.walked.append(len(rows))
        return rows

    async def plan(self, connection: Connection, rows: Sequence[PlainRow], now: datetime) -> PlainPlan:
        plan = PlainPlan(considered=len(rows))
        for row in rows:
            if "worse" in row.payload:
                raise ValueError("a plan that gives up")
            if "bad" in row.payload:
                plan.failed.append((row, "ValueError: bad"))
            else:
                plan.fired.append(row)
        plan.processed = plan.fires = len(plan.fired)
        await connection.execute(REMOVE, ([row.ctid for row in plan.fired],))
        return plan

    async def write(self, connection: Connection, plan: PlainPlan, now: datetime, epoch: int) -> None:
        events = [
            NewEvent(row.fire_at, "derived", "plain", {"kind": self.kind, "key": row.key}, rule=row.ref)
            for row in plan.fired
        ]
        await append_events(connection, events, epoch=epoch)


async def arm_plain(
    connection: Connection, kind: str, at: datetime, *, ref: str = "one", count: int = 1, held: bool = False
) -> None:
    """Arm timers of one entity at one instant, with the keys 00001, 00002 and so on."""
    await connection.execute(ARM, {"kind": kind, "ref": ref, "at": at, "count": count, "held": held})


async def spoil(connection: Connection, kind: str, key: str, how: str) -> None:
    await connection.execute(
        "update tocsin.timer set payload = jsonb_build_object(%s::text, true) where kind = %s and key = %s",
        (how, kind, key),
    )


async def release(connection: Connection) -> None:
    await connection.execute("update tocsin.timer set payload = '{}' where payload ? 'held'")


async def fired_plain(connection: Connection, kind: str) -> list[tuple[str, str]]:
    rows = await all_rows(
        connection,
        "select rule, payload ->> 'key' as key from tocsin.event"
        " where type = 'plain' and payload ->> 'kind' = %s order by seq",
        (kind,),
    )
    return [(row["rule"], row["key"]) for row in rows]
