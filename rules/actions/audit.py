"""Records in the audit what an operator did to a run."""

from __future__ import annotations

from uuid import UUID

from tocsin.core.audit import Actor, record_audit
from tocsin.core.db import Connection


async def audit_run(connection: Connection, actor: Actor, verb: str, id: UUID, name: str, owner: str) -> None:
    """`name` is the name of the action."""
    await record_audit(connection, actor, verb, "action", name, owner=owner, new={"id": str(id)})
