"""The delay before the next attempt of a step. Pure: the same wherever it is computed.

Why the jitter is a hash: steps that failed together spread out, and a replay or a second worker
computes the same instant.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta

from schemas.documents.runbook import RetryPolicy

_SHARES = 2**32


def delay_before(retry: RetryPolicy, attempt: int, salt: str) -> timedelta:
    """The delay before `attempt`, which is the second or a later one. `salt` names the run and the
    step."""
    # Multiplied in a loop: a power of a hundred attempts does not fit in a timedelta.
    delay_s = retry.initial_interval.total_seconds()
    for _ in range(attempt - 2):
        if delay_s >= retry.max_interval.total_seconds():
            break
        delay_s *= retry.backoff
    delay_s = min(delay_s, retry.max_interval.total_seconds())
    digest = hashlib.sha256(f"{salt}/{attempt}".encode()).digest()
    share = int.from_bytes(digest[:4], "big") / _SHARES
    return timedelta(seconds=delay_s * (1 - retry.jitter * share))
