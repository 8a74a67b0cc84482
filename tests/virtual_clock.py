"""A clock that moves only when a test moves it."""

from __future__ import annotations

from datetime import datetime


class VirtualClock:
    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        return self._now

    def move_to(self, instant: datetime) -> None:
        self._now = instant
