"""The outcome of an act, for the page after its redirect: in a cookie that the next page reads and deletes.

Why a cookie and not the URL: a link could otherwise make the console claim what did not happen.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import asdict, dataclass, field

from starlette.requests import HTTPConnection
from starlette.responses import Response

COOKIE = "tocsin-done"
_LIFETIME_S = 60
_MOST_LINES = 8
_LONGEST_LINE = 200


@dataclass(frozen=True)
class Flash:
    done: str = ""
    """What was done, in the words of the command line."""
    failed: list[str] = field(default_factory=list)
    command: str = ""
    """The command that does the same."""


def keep_flash(response: Response, connection: HTTPConnection, flash: Flash) -> None:
    bounded = Flash(
        flash.done[:_LONGEST_LINE],
        [line[:_LONGEST_LINE] for line in flash.failed[:_MOST_LINES]],
        flash.command[:_LONGEST_LINE],
    )
    text = base64.urlsafe_b64encode(json.dumps(asdict(bounded)).encode()).decode()
    is_secure = connection.url.scheme == "https"
    response.set_cookie(
        COOKIE, text, max_age=_LIFETIME_S, path="/", httponly=True, samesite="strict", secure=is_secure
    )


def flash_of(connection: HTTPConnection) -> Flash | None:
    text = connection.cookies.get(COOKIE)
    if not text:
        return None
    try:
        values = json.loads(base64.urlsafe_b64decode(text))
        return Flash(str(values["done"]), [str(line) for line in values["failed"]], str(values["command"]))
    except (ValueError, binascii.Error, KeyError, TypeError):
        return None


def forget_flash(response: Response) -> None:
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
