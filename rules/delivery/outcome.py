"""Outcomes of a delivery: delivered, retryable or permanent.

Guarantee: every answer of a server, and every missing answer, has exactly one outcome. The
`Retry-After` of a server is respected, up to an hour.

Why redirects are permanent: following one would send the message and its secrets to an address that
no document names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Literal

DeliveryState = Literal["delivered", "retryable", "permanent"]

MAX_RETRY_AFTER = timedelta(hours=1)
_RETRYABLE_STATUS = frozenset((408, 425, 429))


@dataclass(frozen=True)
class DeliveryOutcome:
    state: DeliveryState
    text: str
    """The answer, or the reason of the failure, in one sentence for the history."""
    result: dict[str, Any] = field(default_factory=dict)
    """The result of the step, as plain JSON."""
    retry_after: timedelta | None = None


def outcome_of_answer(
    where: str, status: int, headers: Mapping[str, str], excerpt: str, now: datetime
) -> DeliveryOutcome:
    result: dict[str, Any] = {"target": where, "status": status}
    detail = f": {excerpt}" if excerpt else ""
    if 200 <= status < 300:
        return DeliveryOutcome("delivered", f"{where} answered {status}", result)
    if 300 <= status < 400:
        return DeliveryOutcome(
            "permanent",
            f"{where} answered {status}, a redirect, which is not followed: set the final url",
            result,
        )
    if status in _RETRYABLE_STATUS or status >= 500:
        delay = retry_after(headers.get("Retry-After", ""), now)
        return DeliveryOutcome("retryable", f"{where} answered {status}{detail}", result, delay)
    return DeliveryOutcome("permanent", f"{where} answered {status}{detail}", result)


def retry_after(value: str, now: datetime) -> timedelta | None:
    """The delay of a `Retry-After` header in seconds or as a date; None if it is absent, wrong or
    in the past."""
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(timedelta(seconds=min(int(value[:9]), 10**8)), MAX_RETRY_AFTER)
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    delay = (at if at.tzinfo else at.replace(tzinfo=UTC)) - now
    return min(delay, MAX_RETRY_AFTER) if delay > timedelta(0) else None
