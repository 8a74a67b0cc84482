"""Protection of connections to Postgres.

Guarantee: nothing is sent in clear text to another host, unless TOCSIN_ALLOW_CLEAR_TEXT says so. The
default of libpq, `sslmode=prefer`, falls back to clear text if a server, or someone in between, asks
for it. Unix sockets and loopback are no network.

On failure: `WrongAddress`, with the host and the parameter to set.
"""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tocsin.core.errors import WrongAddress
from tocsin.core.loopback import is_loopback
from tocsin.core.settings import Settings

_ENCRYPTED = ("require", "verify-ca", "verify-full")
_VERIFIED = ("verify-ca", "verify-full")


def refuse_clear_text(settings: Settings, conninfo: str) -> None:
    if settings.allow_clear_text:
        return
    parts = _effective(conninfo)
    remote = _remote_host(parts)
    if remote and parts.get("sslmode") not in _ENCRYPTED:
        raise WrongAddress(
            f"postgres at {remote!r} might be reached in clear text (sslmode={parts.get('sslmode') or 'prefer'})",
            remedy="add sslmode=verify-full and sslrootcert=... to TOCSIN_POSTGRES, or set "
            "TOCSIN_ALLOW_CLEAR_TEXT=1 if every network between the two is trusted",
        )


def unverified_host(conninfo: str) -> str:
    """The remote host whose certificate is not verified; empty if there is none."""
    parts = _effective(conninfo)
    return _remote_host(parts) if parts.get("sslmode") not in _VERIFIED else ""


def _effective(conninfo: str) -> dict[str, str]:
    """The parameters with those that libpq takes from the environment or a service file."""
    defaults = {
        option.keyword.decode(): option.val.decode()
        for option in psycopg.pq.Conninfo.get_defaults()
        if option.val
    }
    try:
        given = {name: str(value) for name, value in conninfo_to_dict(conninfo).items() if value is not None}
    except psycopg.ProgrammingError:
        return {}  # the connection fails with a better error
    return {**defaults, **given}


def _remote_host(parts: dict[str, str]) -> str:
    for host in (parts.get("hostaddr") or parts.get("host") or "").split(","):
        if host and not host.startswith(("/", "@")) and not is_loopback(host):
            return host
    return ""
