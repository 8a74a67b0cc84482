"""`/v1/silences`: list, add and expire silences. A matcher concerns all owners, so they concern the instance."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from rules.alarms.matching_alarms import compile_where, matching_alarms
from rules.suppression.operator import add_silence, expire_silence
from rules.suppression.silence_store import NewSilence, find_silence
from schemas.wire.silence_events import check_silence
from tocsin.api.access.permission import Access, may
from tocsin.api.pages import BY_ID, Keyset, Page, Paged, instant
from tocsin.api.v1.inputs import IdBeginning, Matcher, end_of, id_bounds
from tocsin.core.db import fetch_dicts
from tocsin.core.errors import InvalidInput
from tocsin.policy import Operation

router = APIRouter(tags=["alarms"])
Viewing = Annotated[Access, may(Operation.VIEW_RULES)]
Silencing = Annotated[Access, may(Operation.SILENCE_ALARMS)]
_BY_AGE = Keyset({"created_at": instant, "id": BY_ID})
_ACTIVE = ("pending", "open")
_MOST_MATCHED = 10_000


class SilenceView(BaseModel):
    id: uuid.UUID
    matcher: str
    starts_at: datetime
    ends_at: datetime
    reason: str
    created_by: str
    source: str = Field(description="`operator`, or `maintenance:NAME` for a window of that document.")
    created_at: datetime | None = None
    created_via: str | None = None
    ended_at: datetime | None = None


class SilenceRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    matcher: Matcher
    for_: str | None = Field(default=None, alias="for", max_length=40, examples=["2h"])
    starts_at: AwareDatetime | None = Field(default=None, description="Now by default.")
    ends_at: AwareDatetime | None = None
    reason: str = Field(default="", max_length=1000)
    preview: bool = Field(default=False, description="Only count the alarms that match now.")


class SilenceAdded(BaseModel):
    silence: SilenceView
    matches: int = Field(description="Pending and open alarms that match now.")
    seq: int | None = Field(description="Seq of its event; null for a preview.")


class SilenceExpired(BaseModel):
    id: uuid.UUID
    seq: int


@router.get("/silences", summary="List silences, the newest first")
async def list_silences(
    access: Viewing,
    page: Paged,
    all: Annotated[bool, Query(description="Also those that have ended.")] = False,
    id: IdBeginning = None,
) -> Page[SilenceView]:
    bounds = id_bounds(id, "silence", "tocsin silence list --all")
    async with access.session() as connection:
        rows = await fetch_dicts(
            connection, "tocsin.api.v1/list_silences", {"all": all, **bounds, **_BY_AGE.after(page)}
        )
    return _BY_AGE.page(page, rows, _view)


@router.get("/silences/{id}", summary="Read a silence")
async def read_silence(access: Viewing, id: uuid.UUID) -> SilenceView:
    async with access.session() as connection:
        return _view(await find_silence(connection, str(id)))


@router.post("/silences", status_code=201, summary="Add a silence, or preview how many alarms it matches")
async def add_one_silence(access: Silencing, body: SilenceRequest) -> SilenceAdded:
    matcher = compile_where(body.matcher, "matcher")
    async with access.session() as connection:
        actor = await access.actor(connection)
        starts_at = body.starts_at or actor.now
        ends_at = end_of(body.for_, body.ends_at, starts_at)
        if ends_at is None:
            raise InvalidInput(
                "a silence needs an end", remedy="give `for` a duration, or `ends_at` an instant"
            )
        check_silence(actor.now, starts_at, ends_at, body.reason)
        silence = NewSilence(body.matcher, starts_at, ends_at, body.reason, actor.who)
        seq = None if body.preview else await add_silence(connection, silence, actor)
        matching = await matching_alarms(connection, matcher, _ACTIVE, limit=_MOST_MATCHED)
    names = ("id", "matcher", "starts_at", "ends_at", "reason", "created_by", "source")
    view = SilenceView(**{name: getattr(silence, name) for name in names})
    return SilenceAdded(silence=view, matches=len(matching), seq=seq)


@router.post("/silences/{id}:expire", summary="End a silence now")
async def expire_one_silence(access: Silencing, id: uuid.UUID) -> SilenceExpired:
    async with access.session() as connection:
        row = await find_silence(connection, str(id))
        return SilenceExpired(
            id=id, seq=await expire_silence(connection, row, await access.actor(connection))
        )


def _view(row: dict[str, Any]) -> SilenceView:
    return SilenceView(**{name: row[name] for name in SilenceView.model_fields})
