"""`/v1/actions`: runs of actions, their attempts and statistics; retry and cancel."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BaseModel, Field

from rules.actions import history
from rules.actions.cancel import cancel_run
from rules.actions.retry import retry_run
from rules.runbook.states import DEAD
from tocsin.api.access.permission import Access, may
from tocsin.api.pages import BY_ID, Keyset, Page, Paged, instant
from tocsin.api.v1.inputs import IdBeginning, OptionalText, id_bounds
from tocsin.core.db import Connection, fetch_dicts, fetch_value
from tocsin.core.errors import NotFound
from tocsin.policy import Operation

router = APIRouter(tags=["actions"])
Viewing = Annotated[Access, may(Operation.VIEW_ACTIONS)]
_BY_AGE = Keyset({"started_at": instant, "id": BY_ID})
RunState = Literal[
    "gathering", "queued", "running", "completed", "failed", "timed_out", "cancelled", "skipped", "dead"
]


class RunView(BaseModel):
    id: uuid.UUID
    name: str = Field(description="Name of the action.")
    rule: str
    owner: str
    state: str
    started_at: datetime
    ended_at: datetime | None
    error: str | None
    alarm_id: uuid.UUID | None
    event_id: uuid.UUID
    correlation_id: uuid.UUID
    attempts: int


class AttemptView(BaseModel):
    step: int
    name: str
    kind: str
    attempt: int
    state: str
    due_at: datetime
    changed_at: datetime
    took_ms: int | None
    result: dict[str, Any]


class RunDetail(BaseModel):
    id: uuid.UUID
    name: str
    rule: str
    owner: str
    state: str
    started_at: datetime
    ended_at: datetime | None
    error: str | None
    result: Any
    alarm_id: uuid.UUID | None
    event_id: uuid.UUID
    event_seq: int
    correlation_id: uuid.UUID
    lineage: list[str]
    steps: list[AttemptView]


class RunRetried(BaseModel):
    id: uuid.UUID
    steps: list[int] = Field(description="Steps that begin again.")


class RunCancelled(BaseModel):
    id: uuid.UUID
    state: Literal["cancelled"]


class RunCounts(BaseModel):
    total: int
    states: dict[str, int]
    average_ms: int | None = Field(description="Mean duration of the completed runs.")


class RunStatistics(RunCounts):
    rules: dict[str, RunCounts]


@router.get("/actions", summary="List runs of actions, the newest first")
async def list_runs(
    access: Viewing,
    page: Paged,
    state: Annotated[RunState | None, Query(description="`dead`: failed or timed_out.")] = None,
    name: OptionalText = None,
    rule: OptionalText = None,
    owner: OptionalText = None,
    since: AwareDatetime | None = None,
    id: IdBeginning = None,
) -> Page[RunView]:
    states = None if state is None else list(DEAD) if state == "dead" else [state]
    filters = {
        "owners": access.owners,
        "states": states,
        "name": name,
        "rule": rule,
        "owner": owner,
        "since": since,
        **id_bounds(id, "action", "tocsin actions"),
        **_BY_AGE.after(page),
    }
    async with access.session() as connection:
        rows = await fetch_dicts(connection, "tocsin.api.v1/list_runs", filters)
    return _BY_AGE.page(page, rows, lambda row: RunView(**row))


@router.get("/stats", summary="Count runs of actions by how they ended")
async def read_stats(access: Viewing, since: AwareDatetime | None = None) -> RunStatistics:
    async with access.session() as connection:
        total = await history.read_statistics(connection, since, access.owners)
    rules = {rule: RunCounts(**_counts(counts)) for rule, counts in total.rules.items()}
    return RunStatistics(**_counts(total), rules=rules)


@router.get("/actions/{id}", summary="Read a run with every attempt of every step")
async def read_run(access: Viewing, id: uuid.UUID) -> RunDetail:
    async with access.session() as connection:
        await _owner_of(connection, access, id)
        row = await history.find_run(connection, str(id))
        attempts = await history.read_attempts(connection, row)
    return RunDetail(
        **{name: row[name] for name in RunDetail.model_fields if name in row},
        steps=[_attempt_view(attempt) for attempt in attempts],
    )


@router.post("/actions/{id}:retry", summary="Start a dead run again, from the step that failed")
async def retry_one_run(access: Annotated[Access, may(Operation.RETRY_RUN)], id: uuid.UUID) -> RunRetried:
    async with access.session() as connection:
        access.require(await _owner_of(connection, access, id), "run of owner")
        return RunRetried(id=id, steps=await retry_run(connection, id, await access.actor(connection)))


@router.post("/actions/{id}:cancel", summary="Cancel an active run")
async def cancel_one_run(access: Annotated[Access, may(Operation.CANCEL_RUN)], id: uuid.UUID) -> RunCancelled:
    async with access.session() as connection:
        access.require(await _owner_of(connection, access, id), "run of owner")
        await cancel_run(connection, id, await access.actor(connection))
    return RunCancelled(id=id, state="cancelled")


async def _owner_of(connection: Connection, access: Access, id: uuid.UUID) -> str:
    """The owner of a run, if the caller may view it. `NotFound` otherwise."""
    parameters = {"id": id, "owners": access.visible_owners}
    owner = await fetch_value(connection, "tocsin.api.v1/find_run", parameters)
    if owner is None:
        raise NotFound(f"there is no action '{id}'", remedy="`GET /v1/actions` lists them")
    return str(owner)


def _counts(counts: history.Statistics) -> dict[str, Any]:
    average_ms = None if counts.average_s is None else round(counts.average_s * 1000)
    return {"total": counts.total, "states": counts.states, "average_ms": average_ms}


def _attempt_view(attempt: history.Attempt) -> AttemptView:
    same = ("step", "name", "kind", "attempt", "state", "due_at", "changed_at")
    return AttemptView(
        **{name: getattr(attempt, name) for name in same},
        took_ms=None if attempt.took is None else round(attempt.took.total_seconds() * 1000),
        result=dict(attempt.result),
    )
