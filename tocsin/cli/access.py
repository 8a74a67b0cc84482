"""Access of commands: the principal of the session, and the policy that decides what it may do.

Guarantee: a command that changes something asks the same policy as the API (`tocsin.policy`), before it
changes anything. The principal is the role of the session in Postgres, never an option or a variable. Its
grants follow from the roles that it is a member of. Postgres enforces its own part again, by the rights of
these roles.

Commands that send to NATS (`send`, `emit`, `checkin`) have the permissions of their NATS user instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tocsin.core.errors import Forbidden
from tocsin.policy import AccessRole, Grant, Operation, Principal, decide

if TYPE_CHECKING:
    from tocsin.core.db import Connection

_REMEDY = "log in to Postgres as a member of the role for it, see docs/operating.md"


async def session_principal(connection: Connection) -> Principal:
    """The role of the session, with the grants of the roles that it is a member of."""
    from tocsin.core.db import fetch_one

    row = await fetch_one(connection, "tocsin.cli/read_session_roles")
    assert row is not None
    name, is_trusted, is_operator, is_author, is_reader, patterns = row
    if is_trusted:
        return Principal(name, (Grant(AccessRole.ADMIN, "*"),))
    grants = []
    if is_operator:
        grants.append(Grant(AccessRole.OPERATOR, "*"))
    if is_author:
        grants += [Grant(AccessRole.AUTHOR, "*"), Grant(AccessRole.APPROVER, "*")]
    if is_reader:
        grants += [Grant(AccessRole.VIEWER, pattern) for pattern in patterns]
    return Principal(name, tuple(grants))


async def require(connection: Connection, operation: Operation, owner: str | None = None) -> None:
    """Refuse an operation that the session may not do; `owner` is None for one on the instance."""
    decision = decide(await session_principal(connection), operation, owner)
    if not decision.allowed:
        raise Forbidden(decision.reason, remedy=_REMEDY)
