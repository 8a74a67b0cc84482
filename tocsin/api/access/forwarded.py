"""People that a proxy in front has authenticated (forward-auth): its user and groups headers.

Guarantees: the headers count only from an address in `TOCSIN_API_TRUSTED_PROXIES`, so a client cannot send
them itself. Groups become grants by `TOCSIN_API_GROUPS`; a person without a known group has none. A header
that is there twice is refused: one of the two is the client's.

The proxy must remove these headers from what clients send. A login at the proxy is a cookie, so changes by
other sites are refused as with our own sessions.
"""

from __future__ import annotations

from ipaddress import ip_address

from starlette.requests import HTTPConnection

from tocsin.api.access.caller import Caller
from tocsin.api.access.grant_text import parse_grant
from tocsin.core.api_settings import groups_of, networks_of
from tocsin.core.errors import Unauthenticated
from tocsin.core.settings import Settings
from tocsin.policy import Grant, Principal

USER = "x-forwarded-user"
GROUPS = "x-forwarded-groups"
_LONGEST_NAME = 128


def forwarded_caller(connection: HTTPConnection, settings: Settings) -> Caller | None:
    """The person that a trusted proxy names; None if none does."""
    if not settings.api_trusted_proxies or not _is_trusted(connection, settings):
        return None
    users = connection.headers.getlist(USER)
    if not users:
        return None
    groups = connection.headers.getlist(GROUPS)
    if len(users) > 1 or len(groups) > 1 or not _is_name(users[0]):
        raise Unauthenticated(
            f"{USER} or {GROUPS} is not one readable name",
            remedy="let the proxy remove what clients send in these headers",
        )
    return Caller(Principal(users[0].strip(), _grants(groups, settings)), "proxy")


def _is_trusted(connection: HTTPConnection, settings: Settings) -> bool:
    try:
        address = ip_address(connection.client.host if connection.client else "")
    except ValueError:
        return False
    return any(address in network for network in networks_of(settings.api_trusted_proxies))


def _is_name(text: str) -> bool:
    return 0 < len(text.strip()) <= _LONGEST_NAME and text.isprintable()


def _grants(groups: list[str], settings: Settings) -> tuple[Grant, ...]:
    names = {name.strip() for name in (groups[0].split(",") if groups else [])}
    return tuple(parse_grant(grant) for group, grant in groups_of(settings.api_groups) if group in names)
