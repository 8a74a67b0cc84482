"""Suppression: alarms that are open and notify no one, and the reason.

Guarantee (I8, docs/guarantees.md): a suppressed alarm opens and resolves as always. Only the steps
that its transitions start are held. Each suppression has a reason that operators can read, and an
end after which what is still open is notified. `suppressed_by` decides; it is pure, and the
performer, rule tests and backtests call it.

The kinds: a snooze of the alarm, a silence (by a command, or by a window of a `maintenance`
document), and an open alarm that inhibits it (an `inhibit` document).

On failure: whether a silence is in force depends on the time alone. If the clock does not fire its
end, it ends nevertheless; only the notification of what is still open waits for the event.
"""

from rules.suppression.suppression import (
    SUPPRESSION_KINDS,
    Inhibit,
    MatchedAlarm,
    Silence,
    Suppression,
    matched_alarm,
    suppressed_by,
)

__all__ = [
    "SUPPRESSION_KINDS",
    "Inhibit",
    "MatchedAlarm",
    "Silence",
    "Suppression",
    "matched_alarm",
    "suppressed_by",
]
