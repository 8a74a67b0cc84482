"""The users of the embedded server: one per service, one for the commands and programs of its owner.

All of them are in one account, with permissions. The services run in one process, and everything
belongs to one person: the permissions keep a mistake of one part from the work of the others. Unlike
in `deploy/nats`, workers and `local` may use any subject that is not one of Tocsin itself, because the
rules and programs of a person use what they like.
"""

from __future__ import annotations

import hashlib
import hmac

from tocsin.nats_access.config import user_lines
from tocsin.nats_access.roles import NatsRole, api, cdc, clock, inbox_of, protected_subjects

LOCAL = "local"
WORKER = "worker"


def user_password(secret: str, user: str) -> str:
    """The password of a user. It reveals neither the secret nor the password of another user."""
    return hmac.new(secret.encode(), f"nats/{user}".encode(), hashlib.sha256).hexdigest()[:48]


def embedded_users(namespace: str, owner: str, secret: str) -> str:
    """The block `authorization`. `owner` may do everything, with the secret itself as its password."""
    restricted = (clock(namespace), cdc(namespace), api(namespace))
    names = [role.name for role in restricted]
    return "\n".join(
        [
            "authorization {",
            "  users: [",
            f'      {{user: {owner}, password: "{secret}"}}',
            *(line for role in restricted for line in _restricted(role, secret)),
            *_open(WORKER, [*names, LOCAL], namespace, secret),
            *_open(LOCAL, [*names, WORKER], namespace, secret),
            "  ]",
            "}",
            "",
        ]
    )


def _restricted(role: NatsRole, secret: str) -> list[str]:
    password = user_password(secret, role.name)
    return user_lines(role.name, f'"{password}"', role.publish, [f"{role.inbox}.>", *role.subscribe])


def _open(user: str, others: list[str], namespace: str, secret: str) -> list[str]:
    inboxes = [f"{inbox_of(other)}.>" for other in others]
    return user_lines(
        user,
        f'"{user_password(secret, user)}"',
        [">"],
        [">"],
        [*protected_subjects(namespace), *inboxes],
        [*inboxes, "_INBOX.>"],
    )
