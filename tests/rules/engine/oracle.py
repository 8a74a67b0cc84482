"""The semantics of one series, written down a second time: second by second, without deadlines.

Slow and plain on purpose: it looks at every second and asks what has been true for how long.
"""

from __future__ import annotations

from typing import NamedTuple


class Timing(NamedTuple):
    """All in seconds."""

    sustain: int
    keep_firing_for: int
    cooldown: int


def edges(
    arrivals: list[tuple[int, float]], timing: Timing, fire: float, clear: float, until: int
) -> list[str]:
    """Fires above `fire`, clears at or below `clear`. `arrivals` are (second, value), in order."""
    said: list[str] = []
    firing_since: int | None = None
    clear_since: int | None = None
    opened_at: int | None = None
    is_open = False

    def look(second: int) -> None:
        nonlocal is_open, opened_at, firing_since, clear_since
        if not is_open and firing_since is not None:
            is_cool = opened_at is None or second >= opened_at + timing.cooldown
            if second >= firing_since + timing.sustain and is_cool:
                is_open, opened_at, clear_since = True, second, None
                said.append(f"{second} opened")
        if is_open and clear_since is not None and second >= clear_since + timing.keep_firing_for:
            is_open, firing_since, clear_since = False, None, None
            said.append(f"{second} resolved")

    for second in range(until + 1):
        look(second)
        for value in [value for at, value in arrivals if at == second]:
            if is_open:
                clear_since = (second if clear_since is None else clear_since) if value <= clear else None
            else:
                firing_since = (second if firing_since is None else firing_since) if value > fire else None
            look(second)
    return said
