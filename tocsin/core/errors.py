"""Errors that Tocsin raises on purpose.

Guarantee: what a person can cause or fix arrives as a `TocsinError`. Its message is one lower-case
sentence that shows the offending value and its place; `remedy` says what to do. Any other exception
is a defect and keeps its traceback. The command line prints both and exits with `exit_code`.
"""

from __future__ import annotations


class TocsinError(Exception):
    """The root. `str(error)` is `message: remedy`, or the message alone if there is no remedy."""

    exit_code = 1

    def __init__(self, message: str = "", *, remedy: str = "") -> None:
        super().__init__(f"{message}: {remedy}" if remedy else message)
        self.message = message
        self.remedy = remedy


class InvalidInput(TocsinError):
    """A value is wrong; the message names it and its place."""


class Unreachable(TocsinError):
    """A server could not be reached; the message names its address."""

    exit_code = 2


class WrongAddress(Unreachable):
    """The address or the credentials of a server are missing or wrong: waiting does not help."""


class Refused(TocsinError):
    """The request is well formed, but the state of the instance forbids it."""


class NotFound(Refused):
    """What the request names does not exist, or is not visible to the caller."""


class Forbidden(Refused):
    """The caller is known, and its grants do not allow the operation."""


class Unauthenticated(Refused):
    """The caller has no valid credentials."""


class Deposed(TocsinError):
    """Our epoch was superseded: another clock leads, and this transaction must not commit."""


class Conflict(TocsinError):
    """A transaction found that another one changed what it had read. The caller starts it again."""
