"""`/v1/rules`: the documents in force, and the history of the versions of each."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from rules.documents.applied import check_kind, list_applied, list_versions
from tocsin.api.access.permission import Access, may
from tocsin.api.pages import Keyset, Page, Paged, big_integer
from tocsin.api.v1.inputs import OptionalText
from tocsin.core.errors import NotFound
from tocsin.policy import Operation

router = APIRouter(tags=["rules"])
ViewingRules = Annotated[Access, may(Operation.VIEW_RULES)]
Kind = Annotated[str, Path(max_length=64)]
Name = Annotated[str, Path(max_length=128)]
_BY_VERSION = Keyset({"version": big_integer})


class RuleView(BaseModel):
    kind: str
    name: str
    version: int
    seq: int = Field(description="Seq of the apply that stored it.")
    applied_at: datetime | None
    applied_by: str | None
    via: str | None
    document: dict[str, Any]


class VersionView(RuleView):
    until_seq: int | None = Field(description="Seq of the apply that ended it; null while it is in force.")
    ended_at: datetime | None
    ended_by: str | None


@router.get("/rules", summary="List the documents in force")
async def list_rules(access: ViewingRules, kind: OptionalText = None) -> Page[RuleView]:
    check_kind(kind)
    async with access.session() as connection:
        rows = await list_applied(connection, kind)
    return Page[RuleView](items=[RuleView(**row) for row in rows])


@router.get("/rules/{kind}/{name}", summary="Read a document in force")
async def read_rule(
    access: ViewingRules,
    kind: Kind,
    name: Name,
) -> RuleView:
    check_kind(kind)
    async with access.session() as connection:
        rows = await list_applied(connection, kind, name)
    if not rows:
        raise NotFound(
            f"no {kind} {name!r} is applied", remedy=f"`GET /v1/rules?kind={kind}` lists those that are"
        )
    return RuleView(**rows[0])


@router.get("/rules/{kind}/{name}/versions", summary="List the versions of a document, the newest first")
async def list_rule_versions(access: ViewingRules, page: Paged, kind: Kind, name: Name) -> Page[VersionView]:
    check_kind(kind)
    position = _BY_VERSION.after(page)
    async with access.session() as connection:
        rows = await list_versions(
            connection, kind, name, before=position["after_version"], limit=position["limit"]
        )
    if not rows and page.cursor is None:
        raise NotFound(f"no {kind} {name!r} was ever applied", remedy="`GET /v1/rules` lists the documents")
    return _BY_VERSION.page(page, rows, lambda row: VersionView(**row))
