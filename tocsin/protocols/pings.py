"""Pings of healthchecks: the check-in that a request means. Pure.

A ping is a success, `start`, `fail`, `log` or an exit code from 0 to 255, with the run id `rid` and the
output of the job as its body. `log` records output and changes no state.
"""

from __future__ import annotations

import re
import uuid
from typing import NamedTuple

from schemas.wire.check_in import CheckIn

BODY_LIMIT = 10_000
"""Bytes of a body that are read: the last ones. A check-in keeps the last characters of them."""
_ACTIONS = ("start", "fail", "log")
_NUMBER = re.compile("[0-9]{1,9}")
_LAST_EXIT_CODE = 255


class PingRejected(ValueError):
    """The words are those that a client of healthchecks knows; the status is 400."""


class Ping(NamedTuple):
    check_in: CheckIn | None
    """None for `log`."""
    run: str


def is_action(text: str) -> bool:
    """Whether a part of a path is an action; otherwise it is a name."""
    return text in _ACTIONS or _NUMBER.fullmatch(text) is not None


def read_ping(action: str, rid: str | None) -> Ping:
    """The meaning of an action, empty for a success. Raises `PingRejected`."""
    run = _run(rid)
    if action == "log":
        return Ping(None, run)
    if action in ("", "start", "fail"):
        status = {"": CheckIn("success"), "start": CheckIn("start"), "fail": CheckIn("fail")}[action]
        return Ping(status._replace(run=run), run)
    if not _NUMBER.fullmatch(action) or int(action) > _LAST_EXIT_CODE:
        raise PingRejected("invalid url format")
    code = int(action)
    return Ping(CheckIn("fail" if code else "success", run, code), run)


def output_of(body: bytes) -> str:
    """The end of a body as text; what is no UTF-8 is replaced."""
    return body[-BODY_LIMIT:].decode(errors="replace")


def _run(rid: str | None) -> str:
    if not rid:
        return ""
    try:
        run = str(uuid.UUID(rid))
    except ValueError:
        run = ""
    if run != rid.lower():
        raise PingRejected("invalid uuid format")
    return run
