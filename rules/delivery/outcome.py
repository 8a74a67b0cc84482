"""How a delivery ended: delivered, to be tried again, or never to succeed.

Guarantee: every answer of a server and every failure to get one is exactly one of the three. A server may
say when it wants to be asked again (`Retry-After`), up to an hour.

Why redirects are permanent: following one would send the message, and its secrets, to an address that
nobody wrote down.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Literal

State = Literal["delivered", "retryable", "permanent"]

MAX_RETRY_AFTER = timedelta(hours=1)
_RETRYABLE_STATUS = frozenset((408, 425, 429))


@dataclass(frozen=True)
class Outcome:
    state: State
    text: str
    """One sentence for the history: what was answered, or why it failed."""
    result: dict[str, Any] = field(default_factory=dict)
    """Plain JSON for the step's result."""
    retry_after: timedelta | None = None


def outcome_of_answer(
    where: str, status: int, headers: Mapping[str, str], excerpt: str, now: datetime
) -> Outcome:
    result: dict[str, Any] = {"target": where, "status": status}
    said = f": {excerpt}" if excerpt else ""
    if 200 <= status < 300:
        return Outcome("delivered", f"{where} answered {status}", result)
    if 300 <= status < 400:
        return Outcome(
            "permanent",
            f"{where} answered {status}, a redirect, which is not followed: set the final url",
            result,
        )
    if status in _RETRYABLE_STATUS or status >= 500:
        wait = retry_after(headers.get("Retry-After", ""), now)
        return Outcome("retryable", f"{where} answered {status}{said}", result, wait)
    return Outcome("permanent", f"{where} answered {status}{said}", result)


def retry_after(value: str, now: datetime) -> timedelta | None:
    """Seconds or a date; None when the header is absent, wrong or in the past."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(timedelta(seconds=min(int(value[:9]), 10**8)), MAX_RETRY_AFTER)
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    wait = (at if at.tzinfo else at.replace(tzinfo=UTC)) - now
    return min(wait, MAX_RETRY_AFTER) if wait > timedelta(0) else None
