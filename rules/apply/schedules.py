"""Changes schedules as their `schedule` documents change, and previews their next fires.

Guarantee: schedules are put, moved to another owner and cancelled in the transaction of the caller,
in the order of owner and name, so that two applies cannot deadlock. A schedule that an operator
took over (its source is no longer the rules) is left alone when its document is removed. A document
without a future occurrence, such as an `at` in the past, makes no schedule and ends the one that it
had: a folder of rules can be applied to a new database, whatever has passed since it was written.
`preview_fires` computes the next fires with the code that arms them.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from rules.apply.plan import ApplyPlan, DocumentChange, DocumentKey
from rules.documents.load import recurrence_arguments
from schemas.documents import ScheduleDocument
from timers.recurrence import Recurrence, parse_spec
from timers.schedule_spec import ScheduleSpec
from timers.schedule_times import Row, done_of, next_occurrence, recurrence_of_spec
from timers.schedules import FINISHED, cancel_schedule, find_schedule, list_schedules, put_schedule
from tocsin.core.audit import Actor
from tocsin.core.db import Connection, fetch_one
from tocsin.core.errors import Refused

_MAX_SHOWN_FIRES = 3
_ALL = 1_000_000


class NextFires(NamedTuple):
    """The next fires before and after the change."""

    tz: str
    before: tuple[datetime, ...]
    after: tuple[datetime, ...]


async def change_schedules(
    connection: Connection, plan: ApplyPlan, actor: Actor
) -> dict[DocumentKey, datetime | None]:
    """Change the schedules; returns the next fire of every schedule in the files."""
    changes = [change for change in plan.changes if change.kind == "schedule"]
    if not changes:
        return {}
    rows = await list_schedules(connection, source="rules", limit=_ALL)
    armed: dict[tuple[str, str], datetime | None] = {
        (row["owner"], row["name"]): row["nominal_at"] for row in rows
    }
    next_at: dict[DocumentKey, datetime | None] = {}
    for change in sorted(changes, key=_owner_and_name):
        await _cancel_former(connection, change, actor)
        if isinstance(change.model, ScheduleDocument):
            schedule = change.model.owner, change.name
            is_armed = change.outcome == "unchanged" and schedule in armed
            next_at[change.key] = (
                armed[schedule] if is_armed else await _put(connection, change.model, change, actor)
            )
    return next_at


async def refuse_orphaned_schedules(connection: Connection, plan: ApplyPlan) -> None:
    """Reject the removal of an action that a schedule outside of the files runs."""
    actions = [change.name for change in plan.of_kind("action") if change.outcome == "removed"]
    if not actions:
        return
    row = await fetch_one(connection, "rules.apply/find_schedule_of_actions", {"actions": actions})
    if row is not None:
        owner, name, action = row
        raise Refused(
            f"action {action!r} cannot be removed, schedule {name!r}{f' of owner {owner!r}' if owner else ''} "
            "runs it",
            remedy="cancel the schedule first, or keep the action in the files",
        )


async def preview_fires(connection: Connection, change: DocumentChange, now: datetime) -> NextFires:
    """The fires before and after the change; raises the errors that an apply would raise."""
    model = change.model
    former = await find_schedule(connection, _former_owner(change), change.name)
    before = _armed(former) if former is not None else ()
    if not isinstance(model, ScheduleDocument):
        return NextFires(former["recurrence"]["tz"] if former is not None else "UTC", before, ())
    row = (
        former
        if _former_owner(change) == model.owner
        else await find_schedule(connection, model.owner, model.name)
    )
    after: tuple[datetime, ...] = ()
    if model.enabled and not _is_over(model, row, now):
        recurrence = recurrence_of_spec(schedule_spec(model), row, now)
        done = done_of(row, recurrence.tz)
        after = _following(recurrence, next_occurrence({"name": model.name}, recurrence, now, done).at)
    return NextFires(model.tz, before, after)


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
        retry=None
        if document.retry is None
        else document.retry.model_dump(mode="json", exclude_defaults=True),
        title=document.title,
        description=document.description,
        runbook_url=document.runbook_url,
        enabled=document.enabled,
        source="rules",
    )


async def _put(
    connection: Connection, document: ScheduleDocument, change: DocumentChange, actor: Actor
) -> datetime | None:
    row = await find_schedule(connection, document.owner, document.name)
    if row is not None and change.outcome == "unchanged":
        # An operator took it over: it is left alone.
        nominal_at: datetime | None = row["nominal_at"]
        return nominal_at
    if document.enabled and _is_over(document, row, actor.now):
        if row is not None and row["source"] == "rules" and row["status"] not in FINISHED:
            await cancel_schedule(connection, document.owner, document.name, actor)
        return None
    return (await put_schedule(connection, schedule_spec(document), actor)).next_at


def _is_over(document: ScheduleDocument, row: Row | None, now: datetime) -> bool:
    """Whether the recurrence has no occurrence after now."""
    return recurrence_of_spec(schedule_spec(document), row, now).next_after(now) is None


async def _cancel_former(connection: Connection, change: DocumentChange, actor: Actor) -> None:
    """Cancel the schedule of the former owner: owner and name identify a schedule."""
    owner = _former_owner(change)
    if change.before is None or (change.after is not None and change.after["owner"] == owner):
        return
    row = await find_schedule(connection, owner, change.name)
    if row is not None and row["source"] == "rules" and row["status"] not in FINISHED:
        await cancel_schedule(connection, owner, change.name, actor)


def _former_owner(change: DocumentChange) -> str:
    return str((change.before or change.after or {})["owner"])


def _owner_and_name(change: DocumentChange) -> tuple[str, str]:
    return str((change.after or change.before or {})["owner"]), change.name


def _armed(row: Row) -> tuple[datetime, ...]:
    """The armed tick will fire at its time, even if newer timezone data has another one."""
    if row["status"] != "active" or row["nominal_at"] is None:
        return ()
    return _following(parse_spec(row["recurrence"]), row["nominal_at"])


def _following(recurrence: Recurrence, first: datetime) -> tuple[datetime, ...]:
    fires: list[datetime] = []
    at: datetime | None = first
    while at is not None and len(fires) < _MAX_SHOWN_FIRES:
        fires.append(at)
        at = recurrence.next_after(at)
    return tuple(fires)
