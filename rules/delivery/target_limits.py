"""Limits per target of deliveries: a bulkhead and a circuit breaker.

Guarantee: the deliveries to one target take at most `places` of the steps that a worker performs at
once, so a target that is slow or down does not delay deliveries to others. A target that did not
answer `UNANSWERED_LIMIT` times in succession is down: for `REST_S` seconds deliveries to it are
postponed, then one is tried at a time until it answers. Deliveries that find no place are given turns
at the rate at which the target has taken deliveries so far.

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
LONGEST_TURN_S = 60.0
_SHORTEST_TURN_S = 0.1
_USUAL_S = 0.2
"""Assumed length of a delivery to a target that has not answered yet."""
_NEWEST_SHARE = 0.2
"""Weight of the newest delivery in the mean length."""
_MOST_TARGETS = 1_000
"""Number of targets from which on those without a delivery are forgotten."""


class TargetBusy(TocsinError):
    """All places of the target are taken. The delivery was not begun."""

    def __init__(self, target: str, running: int) -> None:
        super().__init__(f"{running} deliveries to {target} are running", remedy="this one waits")
        self.target = target


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
    mean_s: float = _USUAL_S
    last_turn_s: float = 0.0


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

    def has_place(self, key: str) -> bool:
        state = self._states.get(key)
        return state is None or state.running < self._places

    def turn_s(self, key: str, now_s: float) -> float:
        """Seconds until a delivery that found no place is tried again. Each call takes a turn."""
        state = self._state(key)
        turn_s = max(now_s, state.last_turn_s) + state.mean_s / self._places
        state.last_turn_s = min(turn_s, now_s + LONGEST_TURN_S)
        return max(state.last_turn_s - now_s, _SHORTEST_TURN_S)

    def begin(self, key: str) -> None:
        """Take a place, or raise `TargetBusy`. `end` returns the place."""
        state = self._state(key)
        if state.running >= self._places:
            raise TargetBusy(key, state.running)
        state.running += 1

    def end(self, key: str, now_s: float, *, answered: bool, took_s: float = _USUAL_S) -> None:
        state = self._states[key]
        state.running -= 1
        state.mean_s += (took_s - state.mean_s) * _NEWEST_SHARE
        if answered:
            state.unanswered = 0
            return
        state.unanswered += 1
        if state.unanswered >= UNANSWERED_LIMIT:
            state.rests_until_s = now_s + REST_S

    def _state(self, key: str) -> _State:
        if key not in self._states and len(self._states) >= _MOST_TARGETS:
            self._states = {key: state for key, state in self._states.items() if state.running}
        return self._states.setdefault(key, _State())
