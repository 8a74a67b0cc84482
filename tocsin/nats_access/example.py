"""The example of `deploy/nats/permissions.conf`, which the tests run the whole product with.

`python -m tocsin.nats_access` writes it; `tocsin streams config` prints the same for the producers and
services of an instance.
"""

from __future__ import annotations

from collections.abc import Sequence

from tocsin.nats_access import config, roles

NAMESPACE = "tocsin"
PUBLISHED = ("reports.>",)
_HEAD = """\
# NATS accounts and permissions for the namespace `{namespace}`. Everything that is not listed is denied.
# Written by `tocsin streams config`; README.md describes the users.
#
# Users outside of the account {main} set TOCSIN_NATS_API={prefix}. Each user receives replies under
# its own prefix (TOCSIN_NATS_INBOX=_INBOX_<user>): otherwise a user could read the replies to another.

"""


def example_roles() -> tuple[roles.NatsRole, ...]:
    return (
        *roles.component_roles(NAMESPACE, PUBLISHED),
        roles.producer(NAMESPACE, "producer"),
        roles.producer(NAMESPACE, "plant-7", ["plant-7"]),
        roles.handler(NAMESPACE, "fulfilment", PUBLISHED),
        roles.consumer(NAMESPACE, "billing"),
        roles.consumer(NAMESPACE, "shipping", [f"{NAMESPACE}.v1.event.scheduled.>"]),
    )


def permissions_file(
    namespace: str, chosen: Sequence[roles.NatsRole], published: Sequence[str] = PUBLISHED
) -> str:
    """A file for `include`, with the passwords as variables of the environment of the server."""
    main = namespace.upper().replace("-", "_")
    head = _HEAD.format(namespace=namespace, main=main, prefix=roles.api_prefix(namespace))
    return head + config.accounts(namespace, chosen, password_variable, published)


def password_variable(user: str) -> str:
    return f"$TOCSIN_{user.upper().replace('-', '_')}_PASSWORD"
