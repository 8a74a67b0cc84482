"""Steps that were delivered while all places of their target were taken, and are delivered again later.

Guarantee: such a step costs nothing when it comes again and its target still has no place: neither a
session nor one of the places of the worker. It is known to have ended no process, so it does not count
as a suspect (`rules.lanes.attempts`). Its turns follow the rate of the target
(`rules.delivery.target_limits`), so a backlog for a slow target is not delivered to the workers again
and again, in front of the steps for others.

The state is that of one worker, bounded, and lost with its process.
"""

from __future__ import annotations

from dataclasses import dataclass

from rules.delivery.target_limits import TargetLimits

MAX_WAITING = 20_000


@dataclass
class _Waiting:
    target: str
    returns: int


class WaitingTurns:
    def __init__(self, limits: TargetLimits) -> None:
        self._limits = limits
        self._waiting: dict[int, _Waiting] = {}
        """By the sequence of the message, the oldest first."""

    def returns(self, seq: int) -> int:
        """How often this worker has returned the message for want of a place."""
        waiting = self._waiting.get(seq)
        return 0 if waiting is None else waiting.returns

    def delay_s(self, seq: int, now_s: float) -> float | None:
        """The delay of a message whose target still has no place; None if it can be tried."""
        waiting = self._waiting.get(seq)
        if waiting is None or self._limits.has_place(waiting.target):
            return None
        return self.wait(seq, waiting.target, now_s)

    def wait(self, seq: int, target: str, now_s: float) -> float:
        """Return the message, to be delivered again after the delay."""
        waiting = self._waiting.setdefault(seq, _Waiting(target, 0))
        waiting.target = target
        waiting.returns += 1
        if len(self._waiting) > MAX_WAITING:
            del self._waiting[next(iter(self._waiting))]
        return self._limits.turn_s(target, now_s)

    def forget(self, seq: int) -> None:
        """The message was handled."""
        self._waiting.pop(seq, None)
