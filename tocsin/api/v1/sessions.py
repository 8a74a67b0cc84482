"""`/v1/sessions`: sessions of people, and login links that begin them.

The link is in the answer that creates it, and nowhere else.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from tocsin.api.access import sessions
from tocsin.api.access.grant_text import parse_grant
from tocsin.api.access.permission import VIA, Access, may
from tocsin.api.pages import MOST, Page
from tocsin.policy import Operation

router = APIRouter(tags=["access"])
Managing = Annotated[Access, may(Operation.MANAGE_TOKENS)]


class SessionView(BaseModel):
    id: uuid.UUID
    name: str = Field(description="The person; the `who` of its changes.")
    grants: list[str]
    source: str = Field(description="`link` or `oidc`.")
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime = Field(description="Exact to a minute.")


class LoginRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]+$")
    grants: list[str] = Field(min_length=1, max_length=50, description="Each as `role:pattern`.")


class LoginCreated(BaseModel):
    name: str
    path: str = Field(description="Path of the link on this host. It works once, for ten minutes.")


@router.get("/sessions", summary="List live sessions, the newest first")
async def list_sessions(access: Managing) -> Page[SessionView]:
    async with access.session() as connection:
        rows = await sessions.list_sessions(connection, MOST)
    return Page[SessionView](items=[SessionView(**row) for row in rows])


@router.post("/sessions:login", status_code=201, summary="Create a one-time login link for a person")
async def add_login(access: Managing, body: LoginRequest) -> LoginCreated:
    grants = [parse_grant(text) for text in body.grants]
    async with access.session() as connection:
        code = await sessions.add_login_link(connection, body.name, grants, access.caller.name, VIA)
    return LoginCreated(name=body.name, path=f"/login?code={code}")


@router.delete("/sessions/{id}", status_code=204, summary="End the session of a person")
async def revoke_session(access: Managing, id: uuid.UUID) -> None:
    async with access.session() as connection:
        await sessions.revoke_session(connection, id, access.caller.name, VIA)
    access.context.tokens.forget()
