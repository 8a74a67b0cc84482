"""A handler that writes, for tests of what all writing handlers share."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import BaseModel

from tests.cdc.published_records import T0
from tocsin.api.access.permission import Access, may
from tocsin.api.route_group import RouteGroup
from tocsin.api.routes import GROUPS
from tocsin.core.errors import Refused
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.policy import Operation

router = APIRouter()


class NoteBody(BaseModel):
    text: str


@router.post("/notes", status_code=201)
async def add_note(
    access: Annotated[Access, may(Operation.EMIT_EVENT)], body: NoteBody, response: Response
) -> dict[str, int | str]:
    async with access.session() as connection, connection.transaction():
        seq = await append_events(connection, [NewEvent(T0, "caused", "noted", {"text": body.text})])
    if body.text == "refuse":
        raise Refused("notes are refused", remedy="write another one")
    response.headers["etag"] = f'"{seq}"'
    return {"seq": seq, "text": body.text}


WRITING_GROUPS = (*GROUPS, RouteGroup("notes", router=router))
