"""Options of `consume`: concurrency, attempts, pauses and time limits.

Guarantee: every number is checked when it is given. The reaction to a failure is computed here,
without a server.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

from tocsin.core.errors import InvalidInput, TocsinError

WhenDead = Literal["skip", "stop"]
_LEAST_S = {
    "back_off_s": 0.0,
    "longest_back_off_s": 0.0,
    "ack_wait_s": 1.0,
    "timeout_s": 0.01,
    "drain_s": 0.0,
}
_MOST_CONCURRENT = 1000
_MOST_BATCHED = 5000
_MOST_ATTEMPTS = 1000


class Undeliverable(TocsinError):
    """A record failed on its last attempt, and `when_dead="stop"` lets no later record pass it."""


@dataclass(frozen=True, kw_only=True)
class Delivery:
    concurrency: int = 1
    """1: in order, one record at a time across all processes of the consumer. More: in parallel,
    unordered."""
    batch: int = 500
    """The most records in one call of a handler of `consume_batches`."""
    attempts: int = 5
    """Attempts per record. A process that dies while it handles a record has used one."""
    back_off_s: float = 1.0
    """The pause after the first failure. It doubles with each further one."""
    longest_back_off_s: float = 300.0
    ack_wait_s: float = 30.0
    """Time without a sign of life after which NATS redelivers a record. A running handler sends them.
    """
    timeout_s: float = 300.0
    """A handler that takes longer is cancelled, and its attempt has failed."""
    drain_s: float = 30.0
    """How long a stop waits for running handlers. Then they are cancelled and their records returned.
    """
    when_dead: WhenDead = "skip"
    """After the last attempt: `skip` stores the record as a dead letter and continues, `stop` raises
    `Undeliverable`, so that no later record passes it."""

    def __post_init__(self) -> None:
        _check_count("concurrency", self.concurrency, _MOST_CONCURRENT)
        _check_count("batch", self.batch, _MOST_BATCHED)
        _check_count("attempts", self.attempts, _MOST_ATTEMPTS)
        for field in fields(self):
            if field.name in _LEAST_S:
                _check_seconds(field.name, getattr(self, field.name))
        if self.when_dead not in get_args(WhenDead):
            raise InvalidInput(f"when_dead={self.when_dead!r} does not exist", remedy="use 'skip' or 'stop'")

    def pause_s(self, attempt: int) -> float:
        """The pause after attempt number `attempt`, counted from 1, has failed."""
        return float(min(self.back_off_s * 2 ** min(attempt - 1, 40), self.longest_back_off_s))

    @property
    def most_pending(self) -> int:
        """Records that all processes of the consumer together may have in progress."""
        return 1 if self.concurrency == 1 else max(1000, 10 * self.concurrency)


def _check_count(name: str, value: object, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise InvalidInput(
            f"{name}={value!r} is out of range", remedy=f"give a whole number from 1 to {most}"
        )


def _check_seconds(name: str, value: object) -> None:
    least = _LEAST_S[name]
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= 86_400:
        raise InvalidInput(
            f"{name}={value!r} is out of range", remedy=f"give seconds from {least:g} to 86400"
        )
