"""Limits per target of deliveries: a bulkhead and a circuit breaker.

Guarantee: the deliveries to one target take at most `places` of the steps that a worker performs at
once, so a target that is slow or down does not delay deliveries to others. A target that did not
answer `UNANSWERED_LIMIT` times in succession is down: for `REST_S` seconds deliveries to it are
postponed, then one is tried at a time until it answers.

Why only missing answers count: an answer with an error takes no place for long, and the retry policy
of the step respects its `Retry-After`.

A target is a host and port, or the name of the secret that has its url. Pure: time is an argument.
The state is that of one worker, and lost with its process.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlsplit

from schemas.documents.targets import EmailTarget, Target
from schemas.values.secret import SecretRef
from tocsin.core.errors import TocsinError

UNANSWERED_LIMIT = 5
REST_S = 30.0


class TargetBusy(TocsinError):
    """All places of the target are taken. The delivery was not begun."""


def target_key(target: Target) -> str:
    if isinstance(target, EmailTarget):
        return f"{target.smtp.host}:{target.smtp.port or target.smtp.security}"
    if isinstance(target.url, SecretRef):
        return f"secret {target.url.secret}"
    return urlsplit(target.url).netloc.rpartition("@")[2].lower()


@dataclass
class _State:
    running: int = 0
    unanswered: int = 0
    """Deliveries in succession that had no answer."""
    rests_until_s: float = 0.0


class TargetLimits:
    def __init__(self, places: int) -> None:
        """`places` is the largest number of deliveries to one target at once."""
        self._places = places
        self._states: dict[str, _State] = {}

    def rest(self, key: str, now_s: float) -> timedelta | None:
        """The time until a delivery to a target that is down is tried again; None if it is not down."""
        state = self._states.get(key)
        if state is None or state.unanswered < UNANSWERED_LIMIT:
            return None
        if now_s < state.rests_until_s:
            return timedelta(seconds=state.rests_until_s - now_s)
        return timedelta(seconds=REST_S) if state.running else None

    def begin(self, key: str) -> None:
        """Take a place, or raise `TargetBusy`. `end` returns the place."""
        state = self._states.setdefault(key, _State())
        if state.running >= self._places:
            raise TargetBusy(f"{state.running} deliveries to {key} are running", remedy="this one waits")
        state.running += 1

    def end(self, key: str, now_s: float, *, answered: bool) -> None:
        state = self._states[key]
        state.running -= 1
        if answered:
            state.unanswered = 0
            if state.running == 0:
                del self._states[key]
            return
        state.unanswered += 1
        if state.unanswered >= UNANSWERED_LIMIT:
            state.rests_until_s = now_s + REST_S
