"""TOCSIN_URL and TOCSIN_TOKEN: where the API is, and the token of this person or program."""

from __future__ import annotations

import os
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from tocsin.core.errors import InvalidInput, Refused, WrongAddress

URL, TOKEN, TOKEN_FILE = "TOCSIN_URL", "TOCSIN_TOKEN", "TOCSIN_TOKEN_FILE"


def api_url() -> str | None:
    """The address of the API; None if commands use the database."""
    url = os.environ.get(URL, "").strip().rstrip("/")
    if not url:
        return None
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise WrongAddress(f"{URL}={url!r} is not an address", remedy="write it as https://tocsin.example")
    if parts.username or parts.password:
        raise WrongAddress(f"{URL} has credentials", remedy=f"give the token in {TOKEN}")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise WrongAddress(
            f"{URL}={url!r} would send the token in clear text",
            remedy="use https, or an address of this machine",
        )
    return url


def api_token() -> str:
    token = os.environ.get(TOKEN, "")
    file = os.environ.get(TOKEN_FILE, "")
    if file and not token:
        try:
            token = Path(file).read_text(encoding="ascii", errors="replace")
        except OSError as error:
            raise InvalidInput(f"{TOKEN_FILE}={file!r} cannot be read ({error.strerror})") from None
    if not token.strip():
        raise WrongAddress(f"{URL} is set, and {TOKEN} is not", remedy="`tocsin token add` makes a token")
    return token.strip()


def refuse_over_http() -> None:
    """Refuse a command that needs the servers themselves."""
    url = api_url()
    if url is not None:
        raise Refused(
            f"this command does not work over HTTP ({URL}={url})",
            remedy=f"unset {URL}, and set TOCSIN_POSTGRES and TOCSIN_NATS",
        )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
