"""`/v1/audit`: who changed what, and the check that no row of it was changed since."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from tocsin.api.access.permission import Access, may
from tocsin.api.pages import Keyset, Page, Paged, big_integer
from tocsin.api.v1.inputs import OptionalText
from tocsin.core.audit import list_audit as read_audit
from tocsin.core.audit_chain import verify_chain
from tocsin.policy import Operation

router = APIRouter(tags=["audit"])
Viewing = Annotated[Access, may(Operation.VIEW_AUDIT)]
_BY_ENTRY = Keyset({"id": big_integer})
_HEAD = r"^[0-9]{1,18}:[0-9a-fA-F]{64}$"
_NEWEST = 100_000


class AuditView(BaseModel):
    id: int
    at: datetime
    who: str
    claimed: str | None
    via: str
    verb: str
    kind: str
    owner: str
    name: str
    old: Any
    new: Any


class ChainView(BaseModel):
    checked: int
    unsealed: int = Field(description="Rows that are too new to be chained.")
    position: int = Field(description="Of the last link; with `hash` the head of the chain.")
    hash: str
    problems: list[str] = Field(description="Empty if no row was changed or removed.")


@router.get("/audit", summary="List changes that people and services made, the newest first")
async def list_audit(access: Viewing, page: Paged, name: OptionalText = None) -> Page[AuditView]:
    position = _BY_ENTRY.after(page)
    async with access.session() as connection:
        rows = await read_audit(connection, name, after_id=position["after_id"], limit=position["limit"])
    return _BY_ENTRY.page(page, rows, lambda row: AuditView(**row))


@router.get("/audit:verify", summary="Check that no row of the audit was changed or removed")
async def verify_audit(
    access: Viewing,
    head: Annotated[
        str | None,
        Query(
            pattern=_HEAD, description="`position:hash` of an earlier check, kept outside of the database."
        ),
    ] = None,
) -> ChainView:
    """The newest 100,000 links; `tocsin audit verify` on the database checks all of them."""
    position, _, digest = (head or "").partition(":")
    async with access.session() as connection:
        report = await verify_chain(connection, (int(position), digest) if head else None, newest=_NEWEST)
    return ChainView(**asdict(report))
