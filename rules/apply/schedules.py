"""What a change of a `schedule` document does to the schedule, and what it would do.

Guarantee: schedules are put, moved to another owner and cancelled in the caller's transaction, one after the other in
the order of owner and name, so that no two applies wait for each other in a circle. One that somebody took over (its
source is no longer the rules) is left alone when its document is removed. `foresee` tells the next fires by the
code that arms them.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from rules.apply.plan import Change, Key, Plan
from rules.documents.load import recurrence_arguments
from schemas.documents import ScheduleDocument
from timers.recurrence import Recurrence, parse_spec
from timers.schedule_spec import ScheduleSpec
from timers.schedule_times import Row, next_occurrence, recurrence_of_spec
from timers.schedules import FINISHED, cancel_schedule, find_schedule, list_schedules, put_schedule
from tocsin.core.audit import Actor
from tocsin.core.db import Connection, fetch_one
from tocsin.core.errors import Refused

_FORESEEN = 3
_MOST = 1_000_000


class Foreseen(NamedTuple):
    """The next fires as they are armed, and as they would be."""

    tz: str
    before: tuple[datetime, ...]
    after: tuple[datetime, ...]


async def change_schedules(connection: Connection, plan: Plan, actor: Actor) -> dict[Key, datetime | None]:
    """The next fire of every schedule that a file names."""
    changes = [change for change in plan.changes if change.kind == "schedule"]
    if not changes:
        return {}
    rows = await list_schedules(connection, source="rules", limit=_MOST)
    armed: dict[tuple[str, str], datetime | None] = {
        (row["owner"], row["name"]): row["nominal_at"] for row in rows
    }
    found: dict[Key, datetime | None] = {}
    for change in sorted(changes, key=_owner_and_name):
        await _cancel_former(connection, change, actor)
        if isinstance(change.model, ScheduleDocument):
            place = change.model.owner, change.name
            is_there = change.outcome == "unchanged" and place in armed
            found[change.key] = (
                armed[place] if is_there else await _put(connection, change.model, change, actor)
            )
    return found


async def refuse_orphans(connection: Connection, plan: Plan) -> None:
    """A schedule that no file names may run an action, too: made by a person or a service."""
    actions = [change.name for change in plan.of_kind("action") if change.outcome == "removed"]
    if not actions:
        return
    row = await fetch_one(connection, "rules.apply/find_schedule_of_actions", {"actions": actions})
    if row is not None:
        owner, name, action = row
        raise Refused(
            f"action {action!r} cannot be removed, schedule {name!r}{f' of owner {owner!r}' if owner else ''} runs "
            "it",
            remedy="cancel the schedule first, or keep the action in the files",
        )


async def foresee(connection: Connection, change: Change, now: datetime) -> Foreseen:
    """Raises what applying would raise."""
    model = change.model
    former = await find_schedule(connection, _former_owner(change), change.name)
    before = _armed(former) if former is not None else ()
    if not isinstance(model, ScheduleDocument):
        return Foreseen(former["recurrence"]["tz"] if former is not None else "UTC", before, ())
    row = (
        former
        if _former_owner(change) == model.owner
        else await find_schedule(connection, model.owner, model.name)
    )
    after: tuple[datetime, ...] = ()
    if model.enabled:
        recurrence = recurrence_of_spec(schedule_spec(model), row, now)
        done_until = row["last_occurrence"] if row is not None else None
        after = _following(recurrence, next_occurrence({"name": model.name}, recurrence, now, done_until).at)
    return Foreseen(model.tz, before, after)


def schedule_spec(document: ScheduleDocument) -> ScheduleSpec:
    return ScheduleSpec(
        name=document.name,
        recurrence=recurrence_arguments(document),
        owner=document.owner,
        spread=document.spread or timedelta(0),
        catch_up=document.catch_up,
        window=document.window,
        grace=document.grace,
        max_catch_up=document.max_catch_up,
        type=document.type,
        payload=document.payload,
        action=document.action,
        enabled=document.enabled,
        source="rules",
    )


async def _put(
    connection: Connection, document: ScheduleDocument, change: Change, actor: Actor
) -> datetime | None:
    row = await find_schedule(connection, document.owner, document.name)
    if row is not None and change.outcome == "unchanged":
        # Somebody took it over, and it is as they want it.
        nominal_at: datetime | None = row["nominal_at"]
        return nominal_at
    return (await put_schedule(connection, schedule_spec(document), actor)).next_at


async def _cancel_former(connection: Connection, change: Change, actor: Actor) -> None:
    """A schedule is known by owner and name: one whose owner changed is another, and the former ends."""
    owner = _former_owner(change)
    if change.before is None or (change.after is not None and change.after["owner"] == owner):
        return
    row = await find_schedule(connection, owner, change.name)
    if row is not None and row["source"] == "rules" and row["status"] not in FINISHED:
        await cancel_schedule(connection, owner, change.name, actor)


def _former_owner(change: Change) -> str:
    return str((change.before or change.after or {})["owner"])


def _owner_and_name(change: Change) -> tuple[str, str]:
    return str((change.after or change.before or {})["owner"]), change.name


def _armed(row: Row) -> tuple[datetime, ...]:
    """The armed tick is what will fire, even where newer tz data would say another time."""
    if row["status"] != "active" or row["nominal_at"] is None:
        return ()
    return _following(parse_spec(row["recurrence"]), row["nominal_at"])


def _following(recurrence: Recurrence, first: datetime) -> tuple[datetime, ...]:
    found: list[datetime] = []
    at: datetime | None = first
    while at is not None and len(found) < _FORESEEN:
        found.append(at)
        at = recurrence.next_after(at)
    return tuple(found)
