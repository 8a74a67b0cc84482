"""`/v1/me`: the caller itself, and what it may do."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from tocsin.api.access.caller import Caller
from tocsin.api.access.grant_text import grant_text
from tocsin.api.access.permission import signed_in
from tocsin.policy import RULES, AccessRole, Operation

router = APIRouter(tags=["access"])


class MeView(BaseModel):
    name: str = Field(description="The `who` of changes that you make.")
    credential: str = Field(description="`token`, `session` or `proxy`.")
    expires_at: datetime | None
    grants: list[str] = Field(description="Roles by owners, each as `role:pattern`.")
    operations: list[str] = Field(description="What your grants allow, for some owner or for the instance.")


@router.get("/me", summary="The caller and its grants")
async def read_me(caller: Annotated[Caller, signed_in()]) -> MeView:
    return MeView(
        name=caller.name,
        credential=caller.credential,
        expires_at=caller.expires_at,
        grants=[grant_text(grant) for grant in caller.principal.grants],
        operations=sorted(operation.value for operation in Operation if _allows(caller, operation)),
    )


def _allows(caller: Caller, operation: Operation) -> bool:
    roles, scope = RULES[operation]
    return any(
        (grant.role is AccessRole.ADMIN or grant.role in roles) and (scope == "owner" or grant.pattern == "*")
        for grant in caller.principal.grants
    )
