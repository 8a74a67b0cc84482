"""`/v1/tokens`: tokens of programs. The text of a token is in the answer that creates it, and nowhere else."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from tocsin.api.access.grant_text import parse_grant
from tocsin.api.access.permission import VIA, Access, may
from tocsin.api.access.tokens import TokenChange, add_token, list_tokens, revoke_token
from tocsin.api.pages import MOST, Page
from tocsin.policy import Operation

router = APIRouter(tags=["access"])
Managing = Annotated[Access, may(Operation.MANAGE_TOKENS)]


class TokenView(BaseModel):
    id: uuid.UUID
    name: str = Field(description="Principal that acts with the token.")
    hint: str = Field(description="Beginning of the token.")
    grants: list[str]
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None = Field(description="Exact to a minute.")
    revoked_at: datetime | None
    revoked_by: str | None


class TokenRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]+$")
    grants: list[str] = Field(min_length=1, max_length=50, description="Each as `role:pattern`.")
    expires_at: AwareDatetime | None = None


class TokenCreated(BaseModel):
    id: uuid.UUID
    name: str
    token: str = Field(description="Shown here only.")


@router.get("/tokens", summary="List tokens, without their texts")
async def list_api_tokens(access: Managing) -> Page[TokenView]:
    async with access.session() as connection:
        rows = await list_tokens(connection)
    return Page[TokenView](items=[TokenView(**row) for row in rows[-MOST:]])


@router.post("/tokens", status_code=201, summary="Create a token")
async def add_api_token(access: Managing, body: TokenRequest) -> TokenCreated:
    grants = [parse_grant(text) for text in body.grants]
    change = TokenChange(access.caller.name, VIA)
    async with access.session() as connection:
        added = await add_token(connection, body.name, grants, change, expires_at=body.expires_at)
    return TokenCreated(id=added.id, name=body.name, token=added.text)


@router.delete("/tokens/{token}", status_code=204, summary="Revoke a token")
async def revoke_api_token(
    access: Managing, token: Annotated[str, Path(max_length=128, description="Its id or its name.")]
) -> None:
    async with access.session() as connection:
        await revoke_token(connection, token, TokenChange(access.caller.name, VIA))
    access.context.tokens.forget()
