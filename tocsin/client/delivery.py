"""How records are handed over: one at a time or side by side, how often they are tried, and what then.

Guarantee: every number is checked when it is given. What follows from a failure is computed here, without a
server.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

from tocsin.core.errors import InvalidInput

WhenDead = Literal["skip", "stop"]
_LEAST_S = {
    "back_off_s": 0.0,
    "longest_back_off_s": 0.0,
    "ack_wait_s": 1.0,
    "timeout_s": 0.01,
    "drain_s": 0.0,
}
_MOST_CONCURRENT = 1000
_MOST_ATTEMPTS = 1000


@dataclass(frozen=True, kw_only=True)
class Delivery:
    concurrency: int = 1
    """1: in order, one record at a time over all processes of the consumer. More: side by side, without order."""
    attempts: int = 5
    """How often a record is tried. A process that dies over a record has tried it."""
    back_off_s: float = 1.0
    """The pause after the first failure; it doubles with each."""
    longest_back_off_s: float = 300.0
    ack_wait_s: float = 30.0
    """After this silence NATS gives the record to another process; a handler at work is never silent."""
    timeout_s: float = 300.0
    """A handler that takes longer is cancelled, and has failed."""
    drain_s: float = 30.0
    """How long a stop waits for the handlers at work; then they are cancelled and their records given back."""
    when_dead: WhenDead = "skip"
    """After the last attempt: `skip` puts the record among the dead letters and goes on, `stop` ends with
    `Undeliverable`, so that nothing overtakes it."""

    def __post_init__(self) -> None:
        _check_count("concurrency", self.concurrency, _MOST_CONCURRENT)
        _check_count("attempts", self.attempts, _MOST_ATTEMPTS)
        for field in fields(self):
            if field.name in _LEAST_S:
                _check_seconds(field.name, getattr(self, field.name))
        if self.when_dead not in get_args(WhenDead):
            raise InvalidInput(f"when_dead={self.when_dead!r} does not exist", remedy="use 'skip' or 'stop'")

    def pause_s(self, attempt: int) -> float:
        """The pause after the failure of this attempt, the first of which is 1."""
        return float(min(self.back_off_s * 2 ** min(attempt - 1, 40), self.longest_back_off_s))

    @property
    def most_pending(self) -> int:
        """Records that all processes of the consumer together may have in hand."""
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
