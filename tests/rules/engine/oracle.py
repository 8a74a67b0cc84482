"""The semantics of one series, written a second time: second by second, without deadlines.

Slow and plain on purpose: it looks at every second and asks what has been true for how long.
"""

from __future__ import annotations

from typing import NamedTuple


class Timing(NamedTuple):
    """All in seconds."""

    sustain: int
    keep_firing_for: int
    cooldown: int


def expected_log(
    arrivals: list[tuple[int, float]], timing: Timing, fire: float, clear: float, until: int
) -> list[str]:
    """The transitions of a rule that fires above `fire` and clears at or below `clear`.

    `arrivals` are (second, value), in order.
    """
    log: list[str] = []
    firing_since: int | None = None
    clear_since: int | None = None
    opened_at: int | None = None
    is_open = False

    def advance(second: int, is_input: bool) -> None:
        """At an input only what needs no time happens. A deadline waits for all inputs of its instant:
        in Prometheus too, `for` needs an evaluation at its end that still fires."""
        nonlocal is_open, opened_at, firing_since, clear_since
        if not is_open and firing_since is not None and (not is_input or firing_since == second):
            is_cool = opened_at is None or second >= opened_at + timing.cooldown
            if second >= firing_since + timing.sustain and is_cool:
                is_open, opened_at, clear_since = True, second, None
                log.append(f"{second} opened")
        may_resolve = not is_input or timing.keep_firing_for == 0
        if (
            is_open
            and clear_since is not None
            and may_resolve
            and second >= clear_since + timing.keep_firing_for
        ):
            is_open, firing_since, clear_since = False, None, None
            log.append(f"{second} resolved")

    for second in range(until + 1):
        for value in [value for at, value in arrivals if at == second]:
            if is_open:
                clear_since = (second if clear_since is None else clear_since) if value <= clear else None
            else:
                firing_since = (second if firing_since is None else firing_since) if value > fire else None
            advance(second, is_input=True)
        advance(second, is_input=False)
    return log
